"""Data sets of the UCR and UEA archives, downloaded once."""

from __future__ import annotations

from os import PathLike
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from zipfile import BadZipFile, ZipFile

from ._readers import TrainTest, check_name, read_train_test

__all__ = ["fetch_ucr"]

#: Where the archives are.
ARCHIVE = "https://timeseriesclassification.com/aeon-toolkit/{name}.zip"
#: File with the checksums of what was downloaded, in the format of pooch.
REGISTRY = "registry.txt"
#: Seconds without an answer after which a download fails.
TIMEOUT = 30


def fetch_ucr(
    name: str,
    *,
    data_home: str | PathLike[str] | None = None,
    url: str = ARCHIVE,
    known_hash: str | None = None,
) -> TrainTest:
    """Download a data set of the UCR or UEA archive, or take it from the cache.

    The first download of a data set writes its SHA-256 to ``registry.txt`` beside it; from then on
    a file that differs is refused. skts itself knows no checksums of the archive: give `known_hash`
    to make sure that another machine gets the same data.

    Parameters
    ----------
    name : str
        Name of the data set, as in the archive: "GunPoint".
    data_home : str, path-like or None, default None
        Folder of the cache; None is ``skts`` in the user's cache folder.
    url : str
        Address of a zip file with ``NAME_TRAIN`` and ``NAME_TEST``; ``{name}`` stands for the name.
    known_hash : str or None, default None
        SHA-256 of the zip file; None is that of the first download.

    Returns
    -------
    TrainTest
        As `read_train_test` returns it.

    Raises
    ------
    ImportError
        Where pooch is not installed.
    OSError
        Where there is no such file, or no network.
    ValueError
        Where the file differs from the one that was downloaded first, or holds no data set.

    See Also
    --------
    read_train_test : The two files of a data set from a folder.

    Examples
    --------
    >>> from skts.datasets import fetch_ucr
    >>> X_train, X_test, y_train, y_test = fetch_ucr("GunPoint")  # doctest: +SKIP
    """
    check_name(name)
    try:
        import pooch
    except ImportError as error:
        raise ImportError(
            'fetch_ucr needs pooch, which is not installed: pip install "skts[fetch]".'
        ) from error
    url = url.format(name=name)
    home = Path(pooch.os_cache("skts") if data_home is None else data_home)
    file, registry = f"{name}.zip", home / REGISTRY
    recorded = _recorded(registry).get(file)
    wanted = recorded if known_hash is None else known_hash
    try:
        path = pooch.retrieve(
            url, wanted, fname=file, path=home, downloader=pooch.HTTPDownloader(timeout=TIMEOUT)
        )
    except OSError as error:
        raise OSError(
            f"{url} could not be downloaded ({type(error).__name__}): check the name and the "
            "network, or read files that you have with skts.datasets.read_train_test."
        ) from error
    except ValueError as error:
        raise ValueError(
            f"{url} is not the file with the SHA-256 {wanted}; if you trust the new one, drop "
            f"known_hash and the line of {file} in {registry}."
        ) from error
    try:
        found = _read_zip(Path(path), name)
    except BadZipFile as error:
        Path(path).unlink()
        raise ValueError(f"{url} is no zip file; it was not kept.") from error
    if recorded is None:
        with registry.open("a", encoding="utf-8") as stream:
            stream.write(f"{file} {pooch.file_hash(path)}\n")
    return found


def _recorded(registry: Path) -> dict[str, str]:
    """Checksums of files that were downloaded."""
    if not registry.is_file():
        return {}
    lines = (line.split() for line in registry.read_text(encoding="utf-8").splitlines())
    return {line[0]: line[1] for line in lines if len(line) == 2}


def _read_zip(path: Path, name: str) -> TrainTest:
    """Read the two files of a data set, wherever in a zip file they are."""
    with ZipFile(path) as archive, TemporaryDirectory() as folder:
        for member in archive.namelist():
            own = PurePosixPath(member).name
            if PurePosixPath(own).stem in (f"{name}_TRAIN", f"{name}_TEST"):
                (Path(folder) / own).write_bytes(archive.read(member))
        try:
            return read_train_test(folder, name)
        except FileNotFoundError as error:
            raise ValueError(f"{path} holds no {name}_TRAIN and {name}_TEST.") from error
