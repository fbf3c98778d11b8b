# The app with its embedded database: docker build -t attention-shapes . && docker run -p 8000:8000 -v shapes:/data attention-shapes
# compose.yaml has the app for a campus. --build-arg LIBRARIES=pages leaves out what only workers need: torch, and the
# libraries for files of weights.
ARG LIBRARIES=all

FROM python:3.13-slim AS pages
# container: its own addresses aren't shown to people (app/addresses.py)
ENV PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 \
    ATTENTION_SHAPES_HOST=0.0.0.0 ATTENTION_SHAPES_PORT=8000 ATTENTION_SHAPES_DATA_DIR=/data container=docker
WORKDIR /srv
COPY requirements requirements
RUN pip install --require-hashes --only-binary :all: -r requirements/pages.txt

FROM pages AS all
# For a server with an NVIDIA GPU, --build-arg TORCH=cuda takes the build with CUDA, which is gigabytes.
ARG TORCH=cpu
RUN pip install --require-hashes --only-binary :all: -r requirements/runner.txt && \
    pip install --require-hashes --only-binary :all: --no-deps -r requirements/torch-$TORCH.txt

FROM ${LIBRARIES}
COPY pyproject.toml README.md ./
COPY app app
RUN pip install --no-deps --no-build-isolation -e . && python -m compileall -q app && \
    useradd --system --create-home shapes && mkdir --mode 700 /data && chown shapes /data
COPY templates templates
COPY static static
COPY fonts fonts
COPY worksheets worksheets
COPY data/families data/families
COPY data/computation.toml data/
USER shapes
VOLUME /data
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s \
  CMD ["python", "-c", "import os, urllib.request as u; u.urlopen(f'http://127.0.0.1:{os.environ[\"ATTENTION_SHAPES_PORT\"]}/healthz')"]
CMD ["attention-shapes", "serve"]
