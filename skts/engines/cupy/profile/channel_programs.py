"""The CUDA programs of joins of many channels: which instances there are."""

from __future__ import annotations

from typing import NamedTuple

from ...families.profile.channels import ChannelJoin

__all__ = [
    "BLOCKS_AT_ONCE",
    "HEIGHT",
    "KEPT_AT_ONCE",
    "MANY",
    "MEASURED_AT_ONCE",
    "MOST_CHANNELS",
    "ChannelKernel",
    "choose_walk",
    "kernels",
]

#: Channels that a walk holds: the distances of a pair in registers.
MOST_CHANNELS = 128
#: Channels from which on several warps walk together, see ``walk_many_channels``.
MANY = 3
#: Channels up to which a lane has two diagonals, by the type of the walk: more do not fit into
#: registers.
PAIRED = {"float": 2, "double": 2}
#: Warps that share a multiprocessor without spilling what the loop needs.
BLOCKS = {"float": 16, "double": 12}
#: The same of many channels: diagonals of a lane by the type, of which fewer are taken where shared
#: memory has no room; channels of a warp; warps of a multiprocessor, with 128 registers each.
MANY_DIAGONALS, WARP_CHANNELS, MANY_WARPS = {"float": 4, "double": 2}, 8, 16
#: Shared memory of devices that have little.
LEAST_SHARED = 2**16 - 1024
#: Rows of a band.
HEIGHT = 1024
#: Pairs of many channels that are told apart at a time, when a list is made shorter; blocks of a
#: walk.
KEPT_AT_ONCE, BLOCKS_AT_ONCE = 2**18, 2**18
#: Distances of listed pairs that are measured at a time.
MEASURED_AT_ONCE = 2**24


class ChannelKernel(NamedTuple):
    """An instance of ``walk_channels``, or of ``walk_many_channels``, each of its own file.

    Attributes
    ----------
    channels, included : int
        Channels, and how many of them count in any case.
    worst : bool
        Whether the others count from the farthest on.
    dtype : {"float", "double"}
        The type of covariances, and of what is made of them.
    room : int, default LEAST_SHARED
        Bytes of shared memory that a block may have.
    """

    channels: int
    included: int
    worst: bool
    dtype: str
    room: int = LEAST_SHARED

    @property
    def diagonals(self) -> int:
        """Diagonals of a lane."""
        if self.channels < MANY:
            return 2 if self.channels <= PAIRED[self.dtype] else 1
        diagonals = MANY_DIAGONALS[self.dtype]
        while diagonals > 1 and self._shared(diagonals) > self.room:
            diagonals //= 2
        return diagonals

    @property
    def shared(self) -> int:
        """Bytes of dynamic shared memory of a block."""
        return 0 if self.channels < MANY else self._shared(self.diagonals)

    def _shared(self, diagonals: int) -> int:
        """Bytes of a covariance, and of two distances, of each channel and diagonal."""
        return self.channels * 32 * diagonals * ((4 if self.dtype == "float" else 8) + 4)

    @property
    def warps(self) -> int:
        """Warps of a block."""
        return 1 if self.channels < MANY else -(-self.channels // WARP_CHANNELS)

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return 32 * self.warps

    @property
    def file(self) -> str:
        """Its source file."""
        return f"profile/{'many_' if self.channels >= MANY else ''}channels.cu"

    @property
    def name(self) -> str:
        """Its name in C++."""
        worst = str(self.worst).lower()
        if self.channels >= MANY:
            blocks = max(1, MANY_WARPS // self.warps)
            shape = f"{self.channels}, {self.included}, {self.diagonals}, {self.warps}, {blocks}"
            return f"walk_many_channels<{shape}, {worst}, {self.dtype}>"
        shape = f"{self.channels}, {self.included}, {self.diagonals}, {BLOCKS[self.dtype]}"
        return f"walk_channels<{shape}, {worst}, {self.dtype}>"

    @property
    def settle(self) -> str:
        """Name in C++ of the kernel that settles what a walk of many channels lists."""
        shape = f"{self.channels}, {self.included}"
        return f"settle_runs<{shape}, {str(self.worst).lower()}, {self.dtype}>"


def choose_walk(join: ChannelJoin, dtype: str, room: int = LEAST_SHARED) -> ChannelKernel:
    """Choose for a join, a type, and so many bytes of shared memory."""
    rule = join.rule
    return ChannelKernel(len(join.channels), len(rule.include), bool(rule.worst), dtype, room)


def kernels() -> dict[str, list[str]]:
    """Names of some instances, and of all other kernels, by file."""
    walks = [
        ChannelKernel(channels, included, worst, dtype)
        for channels, included, worst in [
            *((channels, 0, False) for channels in (1, 2, 3, 4, 6, 8, 16, 32)),
            (2, 2, False),
            (3, 1, False),
            (3, 0, True),
            (8, 2, True),
            (128, 0, False),
        ]
        for dtype in ("float", "double")
    ]
    few = [walk.name for walk in walks if walk.channels < MANY]
    many = [name for walk in walks if walk.channels >= MANY for name in (walk.name, walk.settle)]
    return {
        "profile/channels.cu": [
            *few,
            *("keep_pairs", "channel_distances", "settle_channels", "channel_equals"),
        ],
        "profile/many_channels.cu": [*many, "largest_tops", "keep_listed"],
    }
