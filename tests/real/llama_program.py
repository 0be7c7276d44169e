"""llama.cpp of the xllamacpp wheel as a program that takes the options of llama-server that forge passes."""

import argparse
import os
import signal
from pathlib import Path

import xllamacpp


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="llama-server", allow_abbrev=False)
    parser.add_argument("-m", dest="model", required=True)
    parser.add_argument("--host", required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--alias")
    parser.add_argument("--parallel", type=int, default=1)
    parser.add_argument("--ctx-size", type=int, default=0)
    parser.add_argument("--cache-type-k", default="f16")
    parser.add_argument("--cache-type-v", default="f16")
    parser.add_argument("--flash-attn", choices=["on", "off", "auto"], default="auto")
    parser.add_argument("--n-gpu-layers", default="auto")
    parser.add_argument("--threads", type=int, default=-1)
    parser.add_argument("--chat-template-file", type=Path)
    parser.add_argument("--kv-unified", action="store_true")
    parser.add_argument("--jinja", action="store_true")
    parser.add_argument("--no-warmup", action="store_true")
    parser.add_argument("-n", dest="predict", type=int, default=-1)
    return parser.parse_args()


def _params(options: argparse.Namespace) -> object:
    params = xllamacpp.CommonParams()
    params.model.path = options.model
    params.model_alias = {options.alias} if options.alias else set()
    params.hostnames, params.port = [options.host], options.port
    params.api_keys = [key] if (key := os.environ.get("LLAMA_API_KEY")) else []
    params.n_parallel, params.n_ctx, params.kv_unified = options.parallel, options.ctx_size, options.kv_unified
    params.cache_type_k = xllamacpp.ggml_type[f"GGML_TYPE_{options.cache_type_k.upper()}"]
    params.cache_type_v = xllamacpp.ggml_type[f"GGML_TYPE_{options.cache_type_v.upper()}"]
    attention = {"on": "ENABLED", "off": "DISABLED", "auto": "AUTO"}[options.flash_attn]
    params.flash_attn_type = xllamacpp.llama_flash_attn_type[f"LLAMA_FLASH_ATTN_TYPE_{attention}"]
    params.n_predict = options.predict
    params.n_gpu_layers = {"auto": -1, "all": 999}.get(options.n_gpu_layers) or int(options.n_gpu_layers)
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = options.threads
    params.use_jinja, params.warmup = options.jinja, not options.no_warmup
    if options.chat_template_file:
        params.chat_template = options.chat_template_file.read_text(encoding="utf-8")
    params.ui = False
    return params


if __name__ == "__main__":
    wanted = _params(_options())
    ends = {signal.SIGTERM, signal.SIGINT}
    signal.pthread_sigmask(signal.SIG_BLOCK, ends)  # for the server's threads too
    try:
        server = xllamacpp.Server(wanted)
    except RuntimeError:
        raise SystemExit(1) from None  # llama.cpp has said why
    signal.sigwait(ends)
    del server
