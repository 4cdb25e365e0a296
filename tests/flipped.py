"""Files in which one bit is flipped, and files that take the place of others of the same size and time."""

import os
import random
import shutil
from contextlib import contextmanager


@contextmanager
def flipped(file, bit):
    """Flip one bit in place, and flip it back in the end if it is still the same file."""
    state = os.stat(file)
    with file.open("r+b") as opened:  # while it is open, no other file gets its inode
        _flip(opened, bit)
        os.utime(file, ns=(state.st_atime_ns, state.st_mtime_ns))
        yield
        if file.exists() and os.path.samestat(os.stat(file), os.fstat(opened.fileno())):
            _flip(opened, bit)


def _flip(opened, bit):
    opened.seek(bit // 8)
    byte = opened.read(1)[0]
    opened.seek(bit // 8)
    opened.write(bytes([byte ^ 1 << bit % 8]))
    opened.flush()


def bits_of(folder, each, seed=0):
    """Yield so many bits of each file below a folder: some in its first bytes, the others anywhere."""
    draw = random.Random(seed)
    for file in sorted(path for path in folder.rglob("*") if path.is_file()):
        bits = 8 * file.stat().st_size
        for number in range(each if bits else 0):
            yield file, draw.randrange(min(bits, 1200) if number % 3 == 0 else bits)


def _moved(new, file):
    shutil.copystat(file, new)
    os.replace(new, file)


def _copied(new, file):
    shutil.copystat(file, new)
    shutil.copy2(new, file)
    new.unlink()


def _synchronised(new, file):
    """As ``rsync -t --inplace`` does."""
    state = os.stat(file)
    with file.open("r+b") as opened:
        opened.write(new.read_bytes())
    os.utime(file, ns=(state.st_atime_ns, state.st_mtime_ns))
    new.unlink()


REPLACEMENTS = {"touch -r; mv": _moved, "cp -p": _copied, "rsync -t": _synchronised}


def replace(how, file, content):
    """Give a file another content of its size, and its time."""
    before = os.stat(file)
    assert len(content) == before.st_size
    new = file.with_name(f"{file.name}.new")
    new.write_bytes(content)
    REPLACEMENTS[how](new, file)
    after = os.stat(file)
    assert (after.st_size, after.st_mtime_ns) == (before.st_size, before.st_mtime_ns)
