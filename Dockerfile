# An image with fastpart from its wheel, built without network:
#
#     make wheel
#     python3.11 -m pip download --only-binary :all: --dest dist dist/fastpart-*_x86_64.whl
#     docker build --network none -t fastpart .
#     docker run --rm --user "$(id -u):$(id -g)" -v "$PWD:/data" fastpart partition g.bin -k 8 -o parts
#
# The second line needs the network. It puts the wheels that fastpart needs beside it, and runs on the Python and the
# machine of the image. The base image must be there.

ARG BASE=python:3.11-slim
FROM ${BASE}

COPY dist/*.whl /wheels/
RUN python -m pip install --no-cache-dir --no-index --find-links /wheels fastpart && rm -r /wheels

RUN useradd --create-home fastpart
USER fastpart
WORKDIR /data
ENTRYPOINT ["fastpart"]
