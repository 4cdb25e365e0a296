"""Draw everything again: ``python docs/how-it-works/drawings``."""

import levels
import parts
import sampling
import stream
import training

for page in (levels, parts, sampling, stream, training):
    page.draw()
