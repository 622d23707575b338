"""The CUDA programs of joins of many channels: which instances there are."""

from __future__ import annotations

from typing import NamedTuple

from ...families.profile.channels import ChannelJoin

__all__ = ["HEIGHT", "MANY", "MOST_CHANNELS", "ROWS", "ChannelKernel", "choose_walk", "kernels"]

#: Channels that a walk holds: the distances of a pair in registers.
MOST_CHANNELS = 128
#: Channels from which on covariances are in shared memory, see ``walk_many_channels``.
MANY = 17
#: Channels up to which a lane has two diagonals, by the type of the walk: more do not fit into
#: registers.
PAIRED = {"float": 8, "double": 3}
#: Channels, up to which so many warps share a multiprocessor without spilling what the loop needs.
BLOCKS = {"float": ((4, 16), (8, 12)), "double": ((8, 12),)}
LEAST_BLOCKS, MANY_BLOCKS = 8, {"float": ((32, 16),), "double": ()}
#: Rows of a band, and of a run of ``walk_many_channels``. Runs of 8 are bounded less closely: of
#: windows of noise one in 12 may then be near, of runs of 4 one in 100.
HEIGHT, ROWS = 1024, 4


class ChannelKernel(NamedTuple):
    """An instance of ``walk_channels`` or ``walk_many_channels`` of ``channels.cu``.

    Attributes
    ----------
    channels, included : int
        Channels, and how many of them count in any case.
    worst : bool
        Whether the others count from the farthest on.
    dtype : {"float", "double"}
        The type of covariances, and of what is made of them.
    """

    channels: int
    included: int
    worst: bool
    dtype: str

    @property
    def diagonals(self) -> int:
        """Diagonals of a lane."""
        return 2 if self.channels <= PAIRED[self.dtype] else 1

    @property
    def name(self) -> str:
        """Its name in C++."""
        sizes = (BLOCKS if self.channels < MANY else MANY_BLOCKS)[self.dtype]
        known = (number for most, number in sizes if self.channels <= most)
        blocks, worst = next(known, LEAST_BLOCKS), str(self.worst).lower()
        if self.channels >= MANY:
            shape = f"{self.channels}, {self.included}, {ROWS}, {blocks}"
            return f"walk_many_channels<{shape}, {worst}, {self.dtype}>"
        shape = f"{self.channels}, {self.included}, {self.diagonals}, {blocks}"
        return f"walk_channels<{shape}, {worst}, {self.dtype}>"


def choose_walk(join: ChannelJoin, dtype: str) -> ChannelKernel:
    """Choose for a join, and a type."""
    rule = join.rule
    return ChannelKernel(len(join.channels), len(rule.include), bool(rule.worst), dtype)


def kernels() -> dict[str, list[str]]:
    """Names of some instances, and of all other kernels, by file."""
    walks = [
        ChannelKernel(channels, included, worst, dtype).name
        for channels, included, worst in [
            *((channels, 0, False) for channels in (1, 2, 3, 4, 6, 8, 16, 32)),
            (2, 2, False),
            (3, 1, False),
            (3, 0, True),
            (8, 2, True),
        ]
        for dtype in ("float", "double")
    ]
    others = [
        "largest_tops",
        "keep_pairs",
        "channel_distances",
        "settle_channels",
        "channel_equals",
    ]
    return {"profile/channels.cu": [*walks, *others]}
