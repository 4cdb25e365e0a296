"""What the tests of saves that end in their middle share.

A test says first, in the code that its child runs, what `target` is, how `save(i)` writes content i % 2 over the other
one, `save_apart(i)` in a way that leaves this process as it was, and which content is `stored()`.
"""

from child import run_child

SEEN = """
leftover = re.compile(r"\\.%s\\.(tmp|old)-[0-9.]+" % re.escape(target.name))

# What lies beside the target, without the lock file of its owner, which a kill leaves, too.
def others():
    there = {name for name in os.listdir(target.parent) if name != target.name}
    return sorted(there - {f".{target.name}.lock"})

moments = random.Random(0)
seen = {0: 0, 1: 0}
"""

# Of a directory: `stored()` is which content is there, byte by byte.
DIGESTS = """
import json

def save_apart(turn):
    # Polars, which writes the measures, hangs in a forked child if its parent has used it.
    child = os.fork()
    if child == 0:
        save(turn)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0

def content(file):
    # Which parts an update has changed depends on what was there before, and the manifest's checksum on them.
    if file.name != "manifest.json":
        return file.read_bytes()
    manifest = json.loads(file.read_text())
    return repr({name: manifest[name] for name in manifest if name not in ("changed_parts", "manifest_xxh3")}).encode()

def digest():
    files = sorted(path for path in target.rglob("*") if path.is_file())
    return hashlib.sha256(b"".join(bytes(path) + content(path) for path in files)).digest()

digests = []
for turn in (1, 0):
    save_apart(turn)
    digests.insert(0, digest())
assert digests[0] != digests[1]

def stored():
    fp.store.verify(target)
    found = digest()
    assert found in digests, f"a mixture: {sorted(os.listdir(target))}"
    return digests.index(found)
"""

# How long a save takes decides when it is killed.
TIMED = """
begun = time.monotonic()
save_apart(0)
once = time.monotonic() - begun

def pause():
    return moments.uniform(0, min(2 * once, 5))
"""

# `pause()` is the time until the kill.
KILL = """
left = 0
now = stored()
for turn in range(int(sys.argv[-1])):
    child = os.fork()
    if child == 0:
        turn = 1 - now
        while True:
            save(turn)
            turn += 1
    time.sleep(pause())
    os.kill(child, signal.SIGKILL)
    assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGKILL
    now = stored()
    seen[now] += 1
    assert all(leftover.fullmatch(name) for name in others()), others()
    assert len(others()) <= 1, others()
    left += len(others())
save_apart(0)
assert stored() == 0
assert os.listdir(target.parent) == [target.name], others()
print(seen[0], seen[1], left)
"""


def numbers(code, *arguments, timeout):
    """Run the code in a child that must succeed, and return the numbers that it prints."""
    outcome = run_child(code, *arguments, timeout=timeout)
    assert outcome.rc == 0, outcome.err
    return list(map(int, outcome.out.split()))


def assert_kills_hit(code, turns, *arguments, timeout):
    """Kill saves at any time, so many times: both contents are seen, and what a kill leaves is swept later."""
    old, new, left = numbers(code + KILL, *arguments, turns, timeout=timeout)
    assert old + new == turns
    # Otherwise no kill hit a save in its middle.
    assert min(old, new, left) > 0


def assert_interrupts_hit(code, turns, *arguments, timeout):
    """Interrupt saves at any time, so many turns: both contents are seen."""
    old, new, interrupted = numbers(code, *arguments, timeout=timeout)
    assert interrupted == old + new == turns
    assert min(old, new) > 0
