# The app with its embedded database (compose.yaml has PostgreSQL and TLS): docker build -t attention-shapes . && docker run -p 8000:8000 -v shapes:/data attention-shapes
FROM python:3.13-slim
ENV PYTHONUNBUFFERED=1 PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 \
    ATTENTION_SHAPES_HOST=0.0.0.0 ATTENTION_SHAPES_PORT=8000 ATTENTION_SHAPES_DATA_DIR=/data
WORKDIR /srv
COPY pyproject.toml constraints.txt README.md ./
COPY app app
RUN pip install -c constraints.txt -e . && useradd --system --create-home shapes && mkdir /data && chown shapes /data
COPY templates templates
COPY static static
COPY worksheets worksheets
USER shapes
VOLUME /data
EXPOSE 8000
HEALTHCHECK --interval=30s --timeout=5s --start-period=30s \
  CMD ["python", "-c", "import os, urllib.request as u; u.urlopen(f'http://127.0.0.1:{os.environ[\"ATTENTION_SHAPES_PORT\"]}/healthz')"]
CMD ["attention-shapes", "serve"]
