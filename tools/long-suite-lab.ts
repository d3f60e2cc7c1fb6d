import process from "node:process";
import { files, type LongSuite, program, tests } from "./long-suite.ts";

/** What `lab/` answers about other programs, runtimes and sizes, and asks again in each run of the long tier. */
export const labSuites: readonly LongSuite[] = [
  program("gateway-growth", "what a conversation through the gateway takes as it grows", "lab/gateway-growth.ts", {
    full: [],
    quick: ["--calls", 10],
  }),
  program(
    "format-table",
    "what is promised of each format of other programs, on the files of the corpus",
    "lab/format-table.ts",
    { full: [], quick: [] },
    () => (process.env["THROUGHLINE_CORPUS"] === undefined ? "THROUGHLINE_CORPUS is not set" : null),
  ),
  program(
    "usage-ccusage",
    "tokens and cost of Claude Code's transcripts beside ccusage, and the rule of each difference",
    "lab/usage-ccusage.ts",
    { full: [600], quick: [12] },
    () => (process.env["THROUGHLINE_CORPUS"] === undefined ? "THROUGHLINE_CORPUS is not set" : null),
  ),
  program(
    "langgraph-state",
    "threads of LangGraph are what `getState` of a compiled graph has, at each checkpoint",
    "lab/langgraph-state.ts",
    { full: [], quick: [] },
  ),
  program(
    "langgraph-saver",
    "LangGraph's validation suite on each store, and bytes beside its SqliteSaver",
    "lab/langgraph-saver.ts",
    { full: [], quick: ["--stores", "memory", "--turns", "20,60"] },
  ),
  program(
    "ai-sdk-versions",
    "the tests of the adapter for the AI SDK on version 7; the workspace has version 6",
    "lab/ai-sdk-versions.ts",
    { full: [], quick: [] },
  ),
  program(
    "adk-sessions",
    "the session services of Google's ADK and ours: their differences, a run of its Runner, 10,000 events",
    "lab/adk-sessions.ts",
    { full: ["", 10_000], quick: ["", 500] },
  ),
  program(
    "adapter-pairs",
    "one log through OpenAI Agents, two versions of the AI SDK, the ADK, the Claude Agent SDK and LangGraph, in every order of two",
    "lab/adapter-pairs.ts",
    { full: [], quick: [] },
  ),
  program(
    "telemetry-names",
    "spans of a run as the AI SDK's own OpenTelemetry integration has them, and OTLP JSON as OpenTelemetry writes it",
    "lab/telemetry-names.ts",
    { full: [], quick: [] },
  ),
  program(
    "openai-surface",
    "every method of the OpenAI SDK through the gateway and directly, against the mock server of its own tests",
    "lab/openai-surface.ts",
    { full: [], quick: [] },
  ),
  program(
    "openapi-client",
    "a client that openapi-typescript generates from openapi.json compiles, and calls every route with a body",
    "lab/openapi-client.ts",
    { full: [], quick: [] },
  ),
  program(
    "mcp-clients",
    "the clients of both lines of the MCP SDK, oldest and newest, over both transports, get the same answers",
    "lab/mcp-clients.ts",
    { full: [], quick: [] },
  ),
  program(
    "mcp-agents",
    "Claude Code, Codex, Gemini CLI and opencode register the server as the guide shows, and connect to it",
    "lab/mcp-agents.ts",
    { full: [], quick: [] },
  ),
  program(
    "mcp-questions",
    "Claude Code and Codex ask about imported sessions, and their model gets the text that answers",
    "lab/mcp-questions.ts",
    { full: [], quick: ["--only", "codex"] },
  ),
  program(
    "pglite-vectors",
    "every case of the kit about vectors, in both layouts, in PGlite with pgvector",
    "lab/pglite-vectors.ts",
    { full: [], quick: [] },
  ),
  program(
    "gateway-agents",
    "Claude Code, Codex and opencode through the gateway as the guide says, and directly: the same, stored and given back",
    "lab/gateway-agents.ts",
    { full: [], quick: ["--only", "codex"] },
  ),
  program(
    "resumed-agents",
    "Claude Code, Codex, Gemini CLI, pi, opencode and Qwen Code send the whole conversation of a resumed session",
    "lab/resumed-agents.ts",
    { full: [], quick: ["--only", "codex"] },
  ),
  program(
    "mcp-scale",
    "a search over 100,000 sessions by an MCP client, its start, and its memory",
    "lab/benchmarks/mcp.ts",
    { full: ["--check"], quick: ["--sessions", 500, "--runs", 3] },
  ),
  program(
    "runtimes",
    "the conformance kit and a turn on each store on Node 22, 24 and 26, Bun and Deno, and a Worker in workerd",
    "lab/runtimes.ts",
    { full: [], quick: ["--only", "node-22", "--kits", "memory"] },
  ),
  tests("tests-lab", "larger imports", {
    project: "lab",
    full: files(["import-scale"]),
    quick: files(["import-scale"]),
  }),
];
