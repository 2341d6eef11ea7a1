"""Images of shards as files: whole or not there, whoever writes, reads, damages or deletes them."""

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from branchline.routing.control import Operation, Request
from branchline.routing.prefix.layout import UnreadableTree
from branchline.routing.shard import EventBatch, Image, Shard, alone
from branchline.streaming import images as module
from branchline.streaming.images import FOLDER, Images
from branchline.streaming.state import COUNTS

JOB = alone("main")
TOKEN = bytes(range(16))


@pytest.fixture(scope="module")
def shard() -> Shard:
    made = Shard(JOB, 0)
    requests = [
        Request(Operation.SUBSCRIBE, f"s{number % 7}", f"f{number}", filter=f"n > {number} AND t = 'x'")
        for number in range(30)
    ]
    made.handle(1_000, (), requests, EventBatch())
    return made


@pytest.fixture
def images(tmp_path: Path) -> Images:
    return Images("test", JOB, tmp_path)


def write(images: Images, shard: Shard, sequence: int = 1, token: bytes = TOKEN) -> Path:
    images.write(sequence, token, shard.image)
    [path] = [path for at, _, path in images.find(sequence) if at == sequence]
    return path


def opened(images: Images, most: int = 1) -> Shard | None:
    """As a cold worker does it: the newest that can be used."""
    for found in images.find(most):
        image = images.open(*found)
        try:
            if image is not None:
                return Shard(JOB, 0, (), image)
        except UnreadableTree:
            images.damaged(found[2])
    return None


def test_what_was_written_is_there(images: Images, shard: Shard) -> None:
    """The shard comes back as it was, from a file that is only the user's own."""
    path = write(images, shard)
    found = opened(images)
    assert found is not None
    assert (found.state(), found.describe()) == (shard.state(), shard.describe())
    assert path.stat().st_mode & 0o077 == 0
    assert path.parent.stat().st_mode & 0o077 == 0
    assert images.counts == {"images_written": 1}


def test_one_that_is_there_is_not_made_again(images: Images, shard: Shard) -> None:
    """Neither one that is there, nor one that another worker is about to write."""
    write(images, shard)

    def never() -> Image | None:
        raise AssertionError("nobody needs it")

    images.write(1, TOKEN, never)
    images._claimed(2, TOKEN)
    images.write(2, TOKEN, never)
    assert not images.write_aside(2, TOKEN, never)
    assert images.counts == {"images_written": 1}


def test_the_claim_of_a_worker_that_has_ended_is_void(images: Images, shard: Shard) -> None:
    """Whoever comes after it writes the image."""
    ended = os.fork()
    if not ended:
        images._claimed(1, TOKEN)
        os._exit(0)
    os.waitpid(ended, 0)
    assert list(images.find(1)) == []
    assert opened(images) is None
    write(images, shard)
    assert opened(images) is not None


def test_a_process_writes_it_aside(images: Images, shard: Shard) -> None:
    """It is there when the process has ended, and is what the shard was when that began."""
    before = shard.state()
    images.write_aside(1, TOKEN, shard.image)
    images.finish()
    found = opened(images)
    assert found is not None and found.state() == before
    assert list(images.find(0)) == []


def test_images_leave_a_host_time_for_other_things(
    images: Images, shard: Shard, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After one there is a rest in proportion to what it took; meanwhile nobody writes, but asks again."""
    assert images.write_aside(1, TOKEN, shard.image)
    images.finish()
    assert images._took_s > 0
    monkeypatch.setattr(module, "REST", 3_600 / images._took_s)
    assert not images.write_aside(2, TOKEN, shard.image)
    [path] = [path for _, _, path in images.find(1)]
    os.utime(path, (path.stat().st_mtime - 3_601,) * 2)
    assert images.write_aside(2, TOKEN, shard.image)
    images.finish()
    assert [at for at, _, _ in images.find(9)] == [2, 1]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.data())
def test_damage_is_noticed_and_counted(
    tmp_path_factory: pytest.TempPathFactory, shard: Shard, data: st.DataObject
) -> None:
    """A file with any byte changed, cut anywhere, or longer, gives the same shard as before, or none."""
    images = Images("test", JOB, tmp_path_factory.mktemp("damage"))
    path = write(images, shard)
    content = bytearray(path.read_bytes())
    kind = data.draw(st.sampled_from(("change", "cut", "longer", "zero")))
    place = data.draw(st.integers(0, len(content) - 1))
    if kind == "change":
        content[place] ^= data.draw(st.integers(1, 255))
    elif kind == "cut":
        del content[place:]
    elif kind == "longer":
        content += bytes(place + 1)
    else:
        content[place:] = bytes(len(content) - place)
    path.write_bytes(content)
    found = opened(images)
    if found is None:
        assert images.counts["images_damaged"] == 1
        assert not path.exists()
    else:
        # What is between the parts means nothing.
        assert found.state() == shard.state()


def test_a_file_of_another_point_is_no_image_of_this_one(images: Images, shard: Shard) -> None:
    """A file under another one's name is damaged."""
    path = write(images, shard)
    path.rename(path.with_name(path.name.replace("01-", "00-")))
    assert opened(images) is None
    assert images.counts["images_damaged"] == 1


def test_what_others_can_write_is_not_read(images: Images, shard: Shard, tmp_path: Path) -> None:
    """Neither a file nor a folder that somebody else may have written, nor a link to somewhere."""
    path = write(images, shard)
    path.chmod(0o622)
    assert opened(images) is None
    path = write(images, shard)
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    assert opened(images) is None
    path = write(images, shard)
    path.parent.chmod(0o777)
    assert opened(images) is None
    assert path.exists()


def test_many_write_at_once_and_it_is_whole(tmp_path: Path, shard: Shard) -> None:
    """Whoever opens it meanwhile finds nothing or all of it."""
    many = [Images("test", JOB, tmp_path) for _ in range(8)]

    def write_and_open(images: Images) -> Shard | None:
        for sequence in range(1, 6):
            images.write(sequence, TOKEN, shard.image)
        return opened(images, 5)

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(write_and_open, many))
    assert any(found)
    assert all(each is None or each.state() == shard.state() for each in found)
    assert sum(images.counts["images_damaged"] for images in many) == 0
    assert sum(images.counts["images_written"] for images in many) >= 5


def test_old_ones_go(images: Images, shard: Shard, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a job the newest stay, whatever their numbers; what was left behind goes in time."""
    for age, sequence in enumerate((9, 3, 4, 5)):
        path = write(images, shard, sequence)
        os.utime(path, (10**9 + age, 10**9 + age))
    newest = write(images, shard, 6)
    assert sorted(at for at, _, _ in images.find(100)) == [5, 6]
    leftovers = [newest.with_name("x.tmp"), newest.with_name("x.claim")]
    other = newest.parent.parent / "other"
    other.mkdir()
    for path in (*leftovers, other):
        path.touch()
        os.utime(path, (10**9, 10**9))
    write(images, shard, 7)
    assert not any(path.exists() for path in (*leftovers, other))


def test_where_nothing_can_be_written_nothing_stops(shard: Shard, tmp_path: Path) -> None:
    """No folder, no space: there is no image, and that is counted."""
    (tmp_path / "file").touch()
    images = Images("test", JOB, tmp_path / "file" / "below")
    images.write(1, TOKEN, shard.image)
    images.write_aside(1, TOKEN, shard.image)
    assert list(images.find(1)) == []
    assert images.counts == {"images_unwritten": 2}
    assert images.counts.keys() <= {*COUNTS}


def test_a_full_disk_leaves_nothing_behind(
    images: Images, shard: Shard, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What could not be written whole is taken away, and so is the claim."""
    monkeypatch.setattr(module, "_parts", lambda *_: [b"x" * 10, "no bytes at all"])
    with pytest.raises(TypeError):
        images.write(1, TOKEN, shard.image)
    folder = images._private_folder()
    assert folder is not None and list(folder.iterdir()) == []


def test_another_program_or_job_has_its_own(
    shard: Shard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An image is found by who would have made the same one, and nobody else."""
    monkeypatch.setenv(FOLDER, str(tmp_path))
    write(Images("test", JOB), shard)
    assert opened(Images("test", JOB)) is not None
    assert opened(Images("other", JOB)) is None
    assert opened(Images("test", alone("other"))) is None
    monkeypatch.setattr(module, "program", lambda: "another")
    assert opened(Images("test", JOB)) is None
