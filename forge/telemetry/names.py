"""Names of spans, events and metrics, and the histograms' buckets.

They follow version 1.41 of the GenAI conventions, which today's tools read; later releases renamed most metrics but few
span attributes. Forge's own names begin with `forge.`.
"""

SCOPE = "forge"
SCHEMA_URL = "https://opentelemetry.io/schemas/1.41.0"

# Attributes of the conventions

OPERATION = "gen_ai.operation.name"
PROVIDER = "gen_ai.provider.name"
AGENT_NAME = "gen_ai.agent.name"
WORKFLOW_NAME = "gen_ai.workflow.name"
REQUEST_MODEL = "gen_ai.request.model"
REQUEST_STREAM = "gen_ai.request.stream"
REQUEST_TEMPERATURE = "gen_ai.request.temperature"
REQUEST_TOP_P = "gen_ai.request.top_p"
REQUEST_TOP_K = "gen_ai.request.top_k"
REQUEST_SEED = "gen_ai.request.seed"
REQUEST_STOP = "gen_ai.request.stop_sequences"
REQUEST_MAX_TOKENS = "gen_ai.request.max_tokens"
FINISH_REASONS = "gen_ai.response.finish_reasons"
TIME_TO_FIRST_CHUNK = "gen_ai.response.time_to_first_chunk"
INPUT_TOKENS = "gen_ai.usage.input_tokens"
OUTPUT_TOKENS = "gen_ai.usage.output_tokens"
CACHED_TOKENS = "gen_ai.usage.cache_read.input_tokens"
TOKEN_TYPE = "gen_ai.token.type"  # noqa: S105 - of a model's tokens
TOOL_NAME = "gen_ai.tool.name"
TOOL_TYPE = "gen_ai.tool.type"
TOOL_CALL_ID = "gen_ai.tool.call.id"
TOOL_DESCRIPTION = "gen_ai.tool.description"
SERVER_ADDRESS = "server.address"
SERVER_PORT = "server.port"
ERROR_TYPE = "error.type"
MCP_METHOD = "mcp.method.name"
MCP_PROTOCOL = "mcp.protocol.version"
NETWORK_TRANSPORT = "network.transport"
HTTP_METHOD = "http.request.method"
HTTP_ROUTE = "http.route"
HTTP_STATUS = "http.response.status_code"
URL_SCHEME = "url.scheme"

# Content, recorded only on request

INPUT_MESSAGES = "gen_ai.input.messages"
OUTPUT_MESSAGES = "gen_ai.output.messages"
TOOL_ARGUMENTS = "gen_ai.tool.call.arguments"
TOOL_RESULT = "gen_ai.tool.call.result"

# Metrics of the conventions, with their buckets

DURATION = "gen_ai.client.operation.duration"
FIRST_CHUNK = "gen_ai.client.operation.time_to_first_chunk"
TOKEN_USAGE = "gen_ai.client.token.usage"  # noqa: S105

SECONDS_BUCKETS = tuple(0.01 * 2**n for n in range(14))
TOKEN_BUCKETS = tuple(float(4**n) for n in range(14))

# Values

CHAT, EXECUTE_TOOL, INVOKE_AGENT, INVOKE_WORKFLOW = "chat", "execute_tool", "invoke_agent", "invoke_workflow"

PROVIDERS = {
    "llama-server": "llama.cpp",
    "llamafile": "llama.cpp",
    "lm-studio": "lm_studio",
    "openai-compatible": "openai_compatible",
}
"""Provider names that differ from the profile's name: `openai` is only OpenAI's own service."""

IN_PROCESS = "in_process"
"""The provider of a model without a server."""

# Forge's own

RUN_ID = "forge.run.id"
SEGMENT = "forge.run.segment"
RUN_OUTCOME = "forge.run.outcome"
TURN = "forge.turn"
TARGET = "forge.target"
ATTEMPTS = "forge.attempts"
TOOL_EFFECT = "forge.tool.effect"
TOOL_OUTCOME = "forge.tool.outcome"
PROXY_OUTCOME = "forge.proxy.outcome"

RETRY, RESCUE, REPAIR, CORRECTION = "forge.retry", "forge.rescue", "forge.repair", "forge.correction"
COMPACTION, HELD_BACK, APPROVAL = "forge.compaction", "forge.held_back", "forge.approval"
BACKEND_REPLACED, STEERED = "forge.backend_replaced", "forge.steered"

NOTICES = {"nudged": CORRECTION, "warned": "forge.warning", "fell_back": "forge.fallback"}
"""The names of notices (`stages.events.Notice`) that are not `forge.` and their own."""
