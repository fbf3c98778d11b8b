# The app with its embedded database: docker build -t attention-shapes . && docker run -p 8000:8000 -v shapes:/data attention-shapes
# compose.yaml has the app for a campus. --build-arg LIBRARIES=pages leaves out what only runners need: torch, and the
# libraries for files of weights.
ARG LIBRARIES=all

FROM python:3.13-slim AS pages
ENV PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 \
    ATTENTION_SHAPES_HOST=0.0.0.0 ATTENTION_SHAPES_PORT=8000 ATTENTION_SHAPES_DATA_DIR=/data
WORKDIR /srv
COPY requirements.lock ./
RUN pip install --require-hashes --no-deps -r requirements.lock

FROM pages AS all
COPY requirements-runner.lock requirements-torch.lock ./
# torch without CUDA, which would be gigabytes, by its version. For a server with a GPU, --build-arg TORCH_INDEX= takes
# PyPI's build with CUDA, by its hash.
ARG TORCH_INDEX=https://download.pytorch.org/whl/cpu
RUN pip install --require-hashes --no-deps -r requirements-runner.lock && \
    if [ -n "$TORCH_INDEX" ]; then pip install --no-deps --index-url "$TORCH_INDEX" "$(grep -o '^torch==[0-9.]*' requirements-torch.lock)"; \
    else pip install --require-hashes --no-deps -r requirements-torch.lock; fi

FROM ${LIBRARIES}
COPY pyproject.toml README.md ./
COPY app app
RUN pip install --no-deps --no-build-isolation -e . && python -m compileall -q app && \
    useradd --system --create-home shapes && mkdir --mode 700 /data && chown shapes /data
COPY templates templates
COPY static static
COPY fonts fonts
COPY worksheets worksheets
USER shapes
VOLUME /data
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s \
  CMD ["python", "-c", "import os, urllib.request as u; u.urlopen(f'http://127.0.0.1:{os.environ[\"ATTENTION_SHAPES_PORT\"]}/healthz')"]
CMD ["attention-shapes", "serve"]
