# The page on a CPU: `docker build -t explorer . && docker run --read-only --tmpfs /tmp -p 7860:7860 explorer`
FROM python:3.11-slim

WORKDIR /app
COPY requirements.txt .
# The CPU's build of PyTorch first, which is one of those that the requirements ask for: with CUDA it takes gigabytes.
# The package for Redis is what --store redis://… needs.
RUN pip install --no-cache-dir "torch==2.13.*" --index-url https://download.pytorch.org/whl/cpu \
    && pip install --no-cache-dir -r requirements.txt "redis==8.*"
COPY . .

# Nothing is written but below /tmp, by nobody in particular.
USER 1000
# A second thread of a small product only waits, and in a class for a core that somebody else needs.
ENV GRADIO_SERVER_NAME=0.0.0.0 HOME=/tmp PYTHONDONTWRITEBYTECODE=1 OMP_NUM_THREADS=1
EXPOSE 7860
HEALTHCHECK --start-period=60s CMD ["python", "-c", "import os, urllib.request as u; u.urlopen(f\"http://127.0.0.1:{os.environ.get('PORT', 7860)}/health\", timeout=5)"]
ENTRYPOINT ["python", "app.py"]
CMD ["--public"]
