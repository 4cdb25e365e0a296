# An image with fastpart and torch from their wheels, built without network:
#
#     make wheel
#     python3.11 -m pip download --only-binary :all: --dest dist \
#         --extra-index-url https://download.pytorch.org/whl/cpu "$(echo dist/fastpart-*_x86_64.whl)[train]"
#     docker build --network none -t fastpart .
#     docker run --rm --user "$(id -u):$(id -g)" -v "$PWD:/data" fastpart partition g.bin -k 8 -o parts
#
# The second command needs the network. It puts the wheels that fastpart needs beside it, and runs on the Python and the
# machine of the image. The base image must be there. Without the line of PyTorch's index, pip takes the torch of PyPI,
# which brings the libraries of CUDA: some gigabytes, for an image that trains on GPUs.
#
# `--build-arg EXTRA=` leaves torch out, for partitioning alone. Leave out [train] above, too. Other extras are named in
# the same way, several with commas: `--build-arg EXTRA=train,cloud`.

ARG BASE=python:3.11-slim
FROM ${BASE}

ARG EXTRA=train
RUN --mount=type=bind,source=dist,target=/wheels \
    python -m pip install --no-cache-dir --no-index --find-links /wheels "fastpart${EXTRA:+[$EXTRA]}"

RUN useradd --create-home fastpart
USER fastpart
WORKDIR /data
ENTRYPOINT ["fastpart"]
