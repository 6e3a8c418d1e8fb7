"""Atomic replacement of files, with concurrent readers, planted links, special files and killed writers."""

import os
import signal
import stat
import subprocess
import sys
import threading

import pytest

from scboost._model.atomic import replacing, write_file

pytestmark = pytest.mark.skipif(os.name != "posix", reason="links, pipes and locks as POSIX has them")


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_the_old_content_survives_an_exception(tmp_path):
    path = tmp_path / "model.json"
    path.write_bytes(b"old")
    with pytest.raises(TypeError), replacing(path) as stream:
        stream.writelines([b"half of the new", None])
    assert path.read_bytes() == b"old"
    assert names(tmp_path) == ["model.json"]


def test_a_link_planted_at_a_temporary_name_is_not_followed(tmp_path, monkeypatch):
    victim = tmp_path / "victim"
    victim.write_bytes(b"precious")
    for name in (".model.json.part", ".part-model.json"):  # the fixed names of earlier versions
        (tmp_path / name).symlink_to(victim)
    write_file(tmp_path / "model.json", b"new")
    assert victim.read_bytes() == b"precious"
    monkeypatch.setattr("scboost._model.atomic.secrets.token_hex", lambda _: "guessed")
    seen = []
    real = os.open
    monkeypatch.setattr(os, "open", lambda path, *rest: seen.append(path) or real(path, *rest))
    write_file(tmp_path / "other.json", b"new")
    seen[0].symlink_to(victim)
    with pytest.raises(FileExistsError):
        write_file(tmp_path / "other.json", b"evil")
    assert victim.read_bytes() == b"precious"


def test_a_pipe_is_written_to_and_stays_a_pipe(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    got = []
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()))
    reader.start()
    write_file(pipe, b"content" * 50_000)
    reader.join(10)
    assert got == [b"content" * 50_000]
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_a_device_stays_a_device(tmp_path):
    link = tmp_path / "null"
    link.symlink_to("/dev/null")
    write_file(link, b"content")
    assert stat.S_ISCHR(link.stat().st_mode)
    assert link.is_symlink()


def test_standard_output_can_be_a_pipe():
    code = (
        "from pathlib import Path; from scboost._model.atomic import write_file; write_file(Path('/dev/stdout'), b'x')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)  # noqa: S603
    assert done.stdout == b"x"


def test_a_folder_is_refused(tmp_path):
    with pytest.raises(IsADirectoryError, match="is a folder"):
        write_file(tmp_path, b"")


def test_permissions_are_kept_and_new_files_follow_the_umask(tmp_path):
    path = tmp_path / "model.json"
    old = os.umask(0o027)
    try:
        write_file(path, b"1")
        assert stat.S_IMODE(path.stat().st_mode) == 0o640
        path.chmod(0o602)
        write_file(path, b"2")
        assert stat.S_IMODE(path.stat().st_mode) == 0o602
    finally:
        os.umask(old)


def test_names_as_long_as_the_file_system_allows(tmp_path):
    path = tmp_path / ("n" * 250 + ".json")
    write_file(path, b"content")
    assert path.read_bytes() == b"content"


def test_concurrent_writers_and_readers_see_whole_contents_only(tmp_path):
    path = tmp_path / "model.json"
    write_file(path, b"0" * 100_000)
    failures = []

    def work(digit):
        for _ in range(15):
            try:
                write_file(path, digit * 100_000)
            except OSError as error:
                failures.append(error)

    writers = [threading.Thread(target=work, args=(digit,)) for digit in (b"1", b"2", b"3")]
    for writer in writers:
        writer.start()
    while any(writer.is_alive() for writer in writers):
        content = path.read_bytes()
        assert len(content) == 100_000
        assert len(set(content)) == 1
    assert not failures
    assert names(tmp_path) == ["model.json"]


def test_writers_remove_files_of_killed_but_not_of_running_writers(tmp_path):
    path = tmp_path / "model.json"
    code = f"""
import time
from pathlib import Path
from scboost._model.atomic import replacing
with replacing(Path({str(path)!r})) as stream:
    stream.write(b"half")
    print("writing", flush=True)
    time.sleep(60)
"""
    writers = [subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) for _ in range(2)]  # noqa: S603
    try:
        for writer in writers:
            assert writer.stdout.readline() == b"writing\n"
        writers[0].send_signal(signal.SIGKILL)
        writers[0].wait()
        assert len(names(tmp_path)) == 2
        write_file(path, b"whole")
        left = names(tmp_path)
        assert len(left) == 2
        assert left[1] == "model.json"
    finally:
        for writer in writers:
            writer.kill()
            writer.wait()
            writer.stdout.close()
    write_file(path, b"last")
    assert names(tmp_path) == ["model.json"]
