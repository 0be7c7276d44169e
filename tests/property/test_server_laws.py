"""Laws of starting servers: whatever a tool prints or a server answers is read or refused, and no option is lost."""

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from forge.backends.ollama import read_ollama
from forge.backends.questions import ServerAnswer
from forge.backends.servers.hardware import GIB, parse_amd, parse_apple, parse_nvidia, profile
from forge.backends.servers.launch import Launch, command

SIZES = st.integers(0, 10**6)


@given(st.text(), st.dictionaries(st.sampled_from(["vendor", "mem_info_vram_total", "gpu_metrics"]), st.binary()))
def test_whatever_the_tools_print_is_no_negative_memory(printed: str, files: dict[str, bytes]) -> None:
    found = (*parse_nvidia(printed), *parse_apple(printed), *filter(None, [parse_amd(files)]))
    hardware = profile(found, 16 * GIB, "a test")
    assert hardware.vram_bytes >= 0
    assert len(hardware.gpus) == len(found)


@given(st.lists(SIZES), st.text("\n ,x[]N/A", max_size=5))
def test_gpus_are_summed_whatever_stands_between(sizes: list[int], between: str) -> None:
    printed = "".join(f"GPU, {size}\n{between.replace(',', '')}\n" for size in sizes)
    assert profile(parse_nvidia(printed), 0, "a test").vram_bytes == sum(sizes) << 20


@given(st.binary(), st.binary())
def test_whatever_ollama_answers_is_a_positive_number_or_nothing(ps: bytes, show: bytes) -> None:
    says = read_ollama("m", ServerAnswer(status=200, body=ps), ServerAnswer(status=200, body=show))
    assert all(number is None or number > 0 for number in (says.loaded, says.modelfile, says.most))


@given(st.integers(1, 10**6), st.integers(1, 64), st.booleans(), st.lists(st.from_regex(r"--x[a-z]+", fullmatch=True)))
def test_each_option_is_one_word_and_the_context_is_that_of_a_slot(
    tokens: int, slots: int, unified: bool, flags: list[str]
) -> None:
    launch = Launch(model="m.gguf", context_tokens=tokens, slots=slots, kv_unified=unified, flags=tuple(flags))
    words = command(launch, "llama-server", Path("/m.gguf"), 1)
    assert int(words[words.index("--ctx-size") + 1]) == tokens * (1 if unified else slots)
    assert len(words) == len(command(Launch(model="m.gguf"), "llama-server", Path("/m.gguf"), 1)) + 2 + unified + len(
        flags
    )
