"""Launches of CUDA kernels: parameters as their sources declare them, arguments that must fit."""

from __future__ import annotations

import numpy as np
import pytest

from skts.engines.cupy import signatures
from skts.engines.cupy.elastic.programs import stepped_policies
from skts.engines.cupy.programs import KERNELS, all_kernels
from skts.engines.cupy.signatures import Parameter, parameters_of

EVERY = [(file, name) for file, names in all_kernels().items() for name in names]
TITLE = "elastic/shortlist.cu: rescale"


@pytest.mark.parametrize("file", sorted(all_kernels()))
def test_every_kernel_of_a_source_is_read(file):
    text = (KERNELS / file).read_text()
    found = signatures.signatures(file)
    assert len(found) == text.count("__global__ void")
    for name, signature in found.items():
        names = [parameter.name for parameter in signature.parameters]
        assert len(set(names)) == len(names) > 0, name
        assert "shared_mem" not in names
        for parameter in signature.parameters:
            assert parameter.name.isidentifier()


def test_every_kernel_has_a_signature():
    assert len(EVERY) > 200
    kinds = {p.type for one in EVERY for p in parameters_of(*one) if not p.pointer}
    policies = {f"{metric}<{cost}>" for metric in ("Dtw", "DogKeeper") for cost in COSTS}
    policies |= {one.of(type) for one in stepped_policies() for type in ("float", "double")}
    policies |= {one.name.replace("<T", "<double") for one in stepped_policies()}
    numbers = {"int", "long long", "double", "unsigned", "unsigned long long", "float", "bool"}
    shapelets = {"Answers", "Block", "Channel", "Columns", "BoundList", "Lists", "Node", "Pairs"}
    shapelets |= {"Queries", "Rows", "Surveyed", "Windows", "Lines", "Shapelets", "Places"}
    profiles = {"Found", "Work"}
    assert kinds - numbers == {"Place", "Interval", "AnyWarping", *policies, *shapelets, *profiles}


COSTS = ("Squared", "Absolute")


def test_members_of_structures(monkeypatch):
    found = signatures.members_of("shapelets/matches.cu", "Pairs")
    assert found == (
        Parameter("groups", "int2", True),
        Parameter("n_groups", "int", False),
        Parameter("left", "int2", True),
        Parameter("counts", "int", True),
    )
    # neither functions nor structures that are not there
    assert signatures.members_of("search/search.cu", "Place") == ()
    assert signatures.members_of("search/search.cu", "Nothing") == ()
    text = """struct Some {  // of; these
        const Row<double, 3>* rows;
        double *q, *s, w;
    };"""
    monkeypatch.setattr(signatures, "source", lambda file: text)
    assert signatures.members_of.__wrapped__("some.cu", "Some") == (
        Parameter("rows", "Row<double, 3>", True),
        Parameter("q", "double", True),
        Parameter("s", "double", True),
        Parameter("w", "double", False),
    )


def test_types_of_an_instance():
    name = "dtw<double, 8, 1, 1, false, Dtw<Squared>, false, false>"
    found = parameters_of("elastic/dtw.cu", name)
    assert found[0] == Parameter("row_values", "double", True)
    assert found[1] == Parameter("row_lengths", "int", True)
    assert found[2] == Parameter("row_stride", "int", False)
    assert found[-1] == Parameter("cell", "Dtw<Squared>", False)
    assert parameters_of("elastic/rotation.cu", "probe")[3] == Parameter(
        "seen", "unsigned long long", True
    )
    assert parameters_of("elastic/shortlist.cu", "shortlist<float>")[0].type == "float"
    with pytest.raises(KeyError):
        parameters_of("elastic/dtw.cu", "no_such_kernel")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("__global__ int f(int a) {}", "returns no void"),
        ("__global__ void f(int) {}", "no parameter"),
        ("__global__ void f(int** a) {}", "no parameter"),
        ("__global__ void f(int a {}", "never closed"),
        ("__global__ void (int a) {}", "without a name"),
    ],
)
def test_sources_that_cannot_be_read(monkeypatch, text, message):
    monkeypatch.setattr(signatures, "source", lambda file: text)
    with pytest.raises(ValueError, match=message):
        signatures.signatures.__wrapped__("some.cu")


def test_comments_and_brackets(monkeypatch):
    text = """// __global__ void not_this(int a);
    template <typename T, int N = (1, 2), typename... More>
    __global__ void __launch_bounds__(128, most<T>(1, (2))) f(  // a comment, with a comma
        const T* __restrict__ x, Row<T, 3> row, /* , */ unsigned long long n) {}
    extern "C" __global__ void g() {}
    """
    monkeypatch.setattr(signatures, "source", lambda file: text)
    found = signatures.signatures.__wrapped__("some.cu")
    assert list(found) == ["f", "g"]
    assert found["f"].template == ("T", "N", "More")
    assert found["f"].parameters == (
        Parameter("x", "T", True),
        Parameter("row", "Row<T, 3>", False),
        Parameter("n", "unsigned long long", False),
    )
    assert found["g"].parameters == ()


# --- arguments ---------------------------------------------------------------------------------


class Launched:
    """A function that keeps what it is launched with."""

    def __call__(self, grid, block, arguments, *, shared_mem=0):
        self.grid, self.block, self.arguments, self.shared = grid, block, arguments, shared_mem


@pytest.fixture
def kernel_of():
    pytest.importorskip("cupy")
    from skts.engines.cupy.launch import Kernel

    return lambda file, name: Kernel(Launched(), file, name)


@pytest.fixture
def arguments():
    cp = pytest.importorskip("cupy")
    return {
        "values": cp.zeros(8),
        "lengths": cp.full(2, 4, np.int32),
        "n_rows": 2,
        "n_channels": 1,
        "width": 4,
        "offset": 0,
        "scale": np.float32(0.5),
        "out": cp.zeros(8, np.float32),
        "error": cp.zeros(1, np.float32),
    }


@pytest.mark.gpu
def test_numbers_become_the_types_of_the_kernel(kernel_of, arguments):
    kernel = kernel_of("elastic/shortlist.cu", "rescale")
    kernel(3, (256,), **dict(reversed(arguments.items())), shared_mem=16)
    got = kernel.function
    assert (got.grid, got.block, got.shared) == ((3,), (256,), 16)
    types = [np.int64, np.int32, np.int32, np.float64, np.float64]
    assert [type(a) for a in got.arguments[2:7]] == types
    assert got.arguments[2:7] == (2, 1, 4, 0.0, 0.5)
    assert got.arguments[0] is arguments["values"]
    # the first by their places, the others by name
    first, *rest = arguments.items()
    kernel((3, 2), 256, (first[1],), **dict(rest))
    assert got.grid == (3, 2)
    assert len(got.arguments) == 9
    kernel((1,), (1,), tuple(arguments.values()))
    assert got.arguments[8] is arguments["error"]


@pytest.mark.gpu
def test_a_launch_that_is_ready_keeps_its_arguments(kernel_of, arguments):
    kernel = kernel_of("elastic/shortlist.cu", "rescale")
    launch = kernel.ready(3, (256,), **arguments, shared_mem=16)
    assert not hasattr(kernel.function, "grid")
    for _ in range(2):
        launch()
        got = kernel.function
        assert (got.grid, got.block, got.shared) == ((3,), (256,), 16)
        assert got.arguments[2:7] == (2, 1, 4, 0.0, 0.5)
        del got.grid
    with pytest.raises(TypeError, match=f"{TITLE} misses error"):
        kernel.ready(3, 256, **{name: arguments[name] for name in arguments if name != "error"})


@pytest.mark.gpu
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n_rows": 2.0}, f"{TITLE}: n_rows is an integer, and got float"),
        ({"n_rows": 2**63}, "n_rows holds -9223372036854775808 to 9223372036854775807, and got 92"),
        ({"scale": "1"}, f"{TITLE}: scale is a number, and got str"),
        ({"scale": None}, "scale is a number, and got NoneType"),
        ({"values": 1}, "values is double\\*, and int is no array of the device"),
        (
            {"values": np.zeros(8)},
            "values is double\\*, and numpy.ndarray is no array",
        ),
        ({"extra": 1}, f"{TITLE} has no extra"),
        ({"width": ...}, f"{TITLE} misses width"),
    ],
)
def test_arguments_that_do_not_fit(kernel_of, arguments, changes, message):
    kernel = kernel_of("elastic/shortlist.cu", "rescale")
    given = {name: value for name, value in (arguments | changes).items() if value is not ...}
    with pytest.raises(TypeError, match=message):
        kernel(1, 256, **given)
    assert not hasattr(kernel.function, "grid")


@pytest.mark.gpu
def test_arrays_of_another_type_and_number_of_arguments(kernel_of, arguments):
    import cupy as cp

    kernel = kernel_of("elastic/shortlist.cu", "rescale")
    for name, dtype in (("values", "f4"), ("out", "f8"), ("out", "i4"), ("error", "i8")):
        with pytest.raises(TypeError, match=rf"rescale: {name} is \w+\*, and the array is of "):
            kernel(1, 256, **arguments | {name: cp.zeros(8, dtype)})
    with pytest.raises(TypeError, match="takes 9 arguments and got 10"):
        kernel(1, 256, (*arguments.values(), 0))
    with pytest.raises(TypeError, match="rescale misses error"):
        kernel(1, 256, tuple(arguments.values())[:-1])
    with pytest.raises(TypeError, match="rescale got twice values"):
        kernel(1, 256, (arguments["values"],), **arguments)
    # by their places only sizes count: kernels order floats by their bits, as integers
    kernel(1, 256, tuple((arguments | {"out": cp.zeros(8, np.int32)}).values()))
    with pytest.raises(TypeError, match=r"out is float\*, and the array is of int64"):
        kernel(1, 256, tuple((arguments | {"out": cp.zeros(8, np.int64)}).values()))
    # null pointers, and integers without sign
    kernel(1, 256, **arguments | {"lengths": cp.zeros(2, np.uint32), "out": None})
    assert kernel.function.arguments[7] is None


@pytest.mark.gpu
def test_structures_and_vectors(kernel_of):
    import cupy as cp

    kernel = kernel_of("search/search.cu", "enter")
    place = np.zeros(1, [("shift", np.int32), ("pitch", np.int32)])
    given = {
        "positions": cp.zeros(1, np.int32),
        "count": None,
        "n": np.bool_(True),
        "place": place,
        "affine": cp.zeros((1, 2), np.float32),
        "error": cp.zeros(1, np.float32),
        "interval": np.zeros(1),
        "limit": 1,
        "entries": cp.zeros((1, 4), np.int32),
    }
    kernel(1, 256, **given)
    kernel(1, 256, **given | {"affine": cp.zeros(1, np.complex64)})
    assert bytes(kernel.function.arguments[3]) == bytes(place)
    kernel(1, 256, **given | {"place": np.void(place.tobytes())})
    assert bytes(kernel.function.arguments[3]) == bytes(place)
    kernel(1, 256, **given | {"place": place[0]})
    assert kernel.function.arguments[3].dtype.names is None
    assert type(kernel.function.arguments[2]) is np.int32
    for name, value, message in (
        ("place", 0, "place is a Place, an array of one element, and got int"),
        ("place", np.zeros(2), "place is a Place"),
        ("affine", cp.zeros((1, 2)), r"affine is float2\*, and the array is of float64"),
        ("entries", cp.zeros((1, 4), np.float32), r"entries is int4\*"),
    ):
        with pytest.raises(TypeError, match=message):
            kernel(1, 256, **given | {name: value})


@pytest.mark.gpu
def test_truth_values():
    """Also as integers, of which there are two."""
    pytest.importorskip("cupy")
    from skts.engines.cupy.launch import _integer

    convert = _integer("a kernel: flag", np.bool_)
    for value in (False, 0, np.False_, np.int64(0)):
        assert convert(value) is np.False_
    for value in (True, 1, np.True_, np.int32(1)):
        assert convert(value) is np.True_
    for value in (2, -1, np.int64(2)):
        with pytest.raises(TypeError, match=f"flag holds 0 to 1, and got {value}"):
            convert(value)


@pytest.mark.gpu
def test_members_of_a_structure_are_given_by_name(kernel_of):
    import cupy as cp

    kernel = kernel_of("shapelets/matches.cu", "match<1>")
    pairs = {"groups": None, "n_groups": 3, "left": cp.zeros((2, 2), np.int32)}
    pairs |= {"counts": cp.zeros(2, np.int32)}
    columns = {"values": cp.zeros((1, 1, 4)), "width": 4, "n_channels": np.int64(1)}
    columns |= {"sizes": cp.zeros(1, np.int32), "series": cp.zeros(1, np.int32), "n_columns": 1}
    asked = {"queries": cp.zeros((1, 4), np.int64), "normal": cp.zeros(3)}
    given = {
        "columns": columns,
        "pairs": pairs,
        "asked": asked | {"kinds": cp.zeros(1, np.uint8)},
        "normalized": True,
        "answers": {"distances": cp.zeros(1), "starts": None},
    }
    kernel(1, 128, **given)
    got = kernel.function.arguments[1]
    # as C lays them out: a pointer begins at a multiple of its size
    assert (type(got), got.nbytes) == (np.void, 32)
    content = np.frombuffer(got, np.uint8)
    assert content[16:24].view(np.uint64) == pairs["left"].data.ptr
    assert (content[:8].view(np.uint64), content[8:12].view(np.int32)) == (0, 3)
    for wrong, message in (
        ({"n_groups": 1.5}, "pairs: n_groups is an integer, and got float"),
        ({"left": cp.zeros(1, np.int64)}, r"pairs: left is int2\*, and the array is of int64"),
        ({"left": np.zeros(1, np.int32)}, "left is int2\\*, and numpy.ndarray is no array"),
        ({"more": 1}, "pairs has no more"),
    ):
        with pytest.raises(TypeError, match=message):
            kernel(1, 128, **given | {"pairs": pairs | wrong})
    with pytest.raises(TypeError, match="pairs misses left"):
        kernel(1, 128, **given | {"pairs": {k: v for k, v in pairs.items() if k != "left"}})
    with pytest.raises(TypeError, match="pairs is a Pairs, .* and got int"):
        kernel(1, 128, **given | {"pairs": 0})


@pytest.mark.gpu
def test_arrays_that_are_sent_together_begin_where_kernels_may_read_16_bytes(rng):
    pytest.importorskip("cupy")
    from skts.engines.cupy.transfers import send

    arrays = [rng.normal(size=n).astype(dtype) for n in (1, 3, 17) for dtype in ("f4", "f8", "i1")]
    for array, there in zip(arrays, send(*arrays), strict=True):
        assert there.data.ptr % 16 == 0
        np.testing.assert_array_equal(there.get(), array)


@pytest.mark.gpu
def test_arrays_that_stay_travel_with_launches_again_and_again(rng):
    """By launches one by one at first, then in a graph, which takes what lies there by then."""
    cp = pytest.importorskip("cupy")
    from skts.engines.cupy.launch import WORTH_A_GRAPH, Copy, Launches
    from skts.engines.cupy.loading import load_kernel
    from skts.engines.cupy.transfers import Staged

    staged = Staged(
        mixes=((2, 2, 3), np.float64), active=((2,), np.uint8), found=((2, 2, 9), np.float64)
    )
    assert not any(array.get().any() for array in staged.there.values())
    bases = rng.normal(size=(2, 3, 9))
    combine = load_kernel("kshape/centers.cu", "combine").ready(
        (1, 2),
        32,
        bases=cp.asarray(bases),
        mixes=staged.there["mixes"],
        active=staged.there["active"],
        known=3,
        room=3,
        size=9,
        out=staged.there["found"],
    )
    all_of_it = Launches([staged.send("mixes", "active"), combine, staged.fetch("found", "found")])
    for _ in range(WORTH_A_GRAPH + 2):
        mixes = staged.here["mixes"][...] = rng.normal(size=(2, 2, 3))
        staged.here["active"][...] = 1
        all_of_it()
        cp.cuda.get_current_stream().synchronize()
        expected = (mixes @ bases).transpose(1, 0, 2)
        np.testing.assert_allclose(staged.here["found"], expected, rtol=1e-12, atol=1e-14)
    for to, source in ((np.zeros(3), cp.zeros(2)), (np.zeros((4, 2))[:, :1], cp.zeros((4, 1)))):
        with pytest.raises(ValueError, match="two contiguous arrays of one size"):
            Copy(to, source)
