// Vercel's AI SDK: node ai_sdk.mjs ADDRESS compatible|anthropic|responses: a tool and a last word, streamed, which it prints.
import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { stepCountIs, streamText, tool } from "ai";
import { z } from "zod";

const [url, provider] = process.argv.slice(2);
const settings = { baseURL: `${url}/v1`, apiKey: "dummy" };
const models = {
  compatible: () => createOpenAICompatible({ name: "local", ...settings })("m"),
  anthropic: () => createAnthropic(settings)("m"),
  responses: () => createOpenAI(settings).responses("m"),
};
const shell = tool({
  description: "Run a command.",
  inputSchema: z.object({ command: z.string() }),
  execute: async ({ command }) => `It printed: ${command.replace("echo ", "")}`,
});
const result = streamText({
  model: models[provider](),
  prompt: "Use the tool to run this command: echo hello-from-tool",
  tools: { shell },
  stopWhen: stepCountIs(4),
  maxRetries: 0,
  onError: ({ error }) => {
    throw error;
  },
});
console.log(await result.text);
console.log((await result.steps).length, await result.finishReason);
