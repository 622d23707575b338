"""The CUDA programs of joins of many channels: which instances there are."""

from __future__ import annotations

from typing import NamedTuple

from ...families.profile.channels import ChannelJoin

__all__ = ["HEIGHT", "MOST_CHANNELS", "ChannelKernel", "choose_walk", "kernels"]

#: Channels that a walk holds in registers and in the memory of its threads.
MOST_CHANNELS = 32
#: Channels up to which a lane has two diagonals: more do not fit into registers.
PAIRED = 6
#: Rows of a band.
HEIGHT = 1024


class ChannelKernel(NamedTuple):
    """Instances of the kernel ``walk_channels`` of ``channels.cu``.

    Attributes
    ----------
    channels, included : int
        Channels, and how many of them count in any case.
    worst : bool
        Whether the others count from the farthest on.
    """

    channels: int
    included: int
    worst: bool

    @property
    def diagonals(self) -> int:
        """Diagonals of a lane."""
        return 2 if self.channels <= PAIRED else 1

    def name(self, lists: bool) -> str:
        """Its name in C++: that of the walk that lists pairs, or of the one before it."""
        flags = ", ".join(str(flag).lower() for flag in (self.worst, lists))
        return f"walk_channels<{self.channels}, {self.included}, {self.diagonals}, {flags}>"


def choose_walk(join: ChannelJoin) -> ChannelKernel:
    """Choose for a join."""
    return ChannelKernel(len(join.channels), len(join.rule.include), bool(join.rule.worst))


def kernels() -> dict[str, list[str]]:
    """Names of some instances, and of all other kernels, by file."""
    walks = [
        ChannelKernel(channels, included, worst).name(lists)
        for channels, included, worst in [
            *((channels, 0, False) for channels in (1, 2, 3, 4, 6, 8, 16, 32)),
            (2, 2, False),
            (3, 1, False),
            (3, 0, True),
            (8, 2, True),
        ]
        for lists in (False, True)
    ]
    return {
        "profile/channels.cu": [*walks, "channel_distances", "settle_channels", "channel_equals"]
    }
