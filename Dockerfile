# The app with its embedded database (compose.yaml has PostgreSQL and TLS): docker build -t attention-shapes . && docker run -p 8000:8000 -v shapes:/data attention-shapes
FROM python:3.13-slim
ENV PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 \
    ATTENTION_SHAPES_HOST=0.0.0.0 ATTENTION_SHAPES_PORT=8000 ATTENTION_SHAPES_DATA_DIR=/data
WORKDIR /srv
COPY requirements.lock requirements-torch.lock ./
# torch without CUDA, which would be gigabytes, by its version. For a server with a GPU, --build-arg TORCH_INDEX= takes
# PyPI's build with CUDA, by its hash.
ARG TORCH_INDEX=https://download.pytorch.org/whl/cpu
RUN pip install --require-hashes --no-deps -r requirements.lock && \
    if [ -n "$TORCH_INDEX" ]; then pip install --no-deps --index-url "$TORCH_INDEX" "$(grep -o '^torch==[0-9.]*' requirements-torch.lock)"; \
    else pip install --require-hashes --no-deps -r requirements-torch.lock; fi
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
HEALTHCHECK --interval=30s --timeout=5s --start-period=30s \
  CMD ["python", "-c", "import os, urllib.request as u; u.urlopen(f'http://127.0.0.1:{os.environ[\"ATTENTION_SHAPES_PORT\"]}/healthz')"]
CMD ["attention-shapes", "serve"]
