import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Agent, type AgentOptions, openAgent } from "@throughline/agent";
import { createProviderSimulator, type ProviderSimulator, type ReceivedRequest } from "@throughline/testing";

/** What a checkpoint of the simulated models says. */
const checkpoint = {
  summary: "The lamps of the quay are counted every week.",
  topics: ["lamps"],
  keyDecisions: ["count every week"],
  openQuestions: [],
};

/** Counts the tokens of a context by the words of the last question. */
function usageOf(messages: string): { readonly inputTokens: number; readonly outputTokens: number } {
  const tokens = messages.split("tokens:").at(-1) ?? "";
  return { inputTokens: Number.parseInt(tokens, 10) || 100, outputTokens: 10 };
}

function requestOf({ body }: ReceivedRequest): { readonly model: string; readonly text: string } {
  return { model: String((body as { readonly model?: unknown }).model), text: JSON.stringify(body) };
}

/** An empty directory of a user, with a provider on this machine. */
export class AgentFolder implements AsyncDisposable {
  readonly path: string = mkdtempSync(join(tmpdir(), "throughline-agent-"));
  readonly notes: string[] = [];
  /** How long the answers of the helper models take, in order. @default at once */
  readonly helperDelaysMs: number[] = [];
  readonly provider: ProviderSimulator = createProviderSimulator({
    ollamaContextTokens: 131_072,
    fallback: (request) => {
      const { model, text } = requestOf(request);
      const isMain = model.includes("opus");
      return isMain
        ? { kind: "answer", content: "Noted.", usage: usageOf(text) }
        : { kind: "answer", content: JSON.stringify(checkpoint), delayMs: this.helperDelaysMs.shift() ?? 0 };
    },
  });

  /** Opens an agent whose model is Claude Opus at the provider, unless `options` say otherwise. */
  open({ environment, ...options }: AgentOptions): Promise<Agent> {
    return openAgent({
      userHome: this.path,
      workingDirectory: join(this.path, "work"),
      onNote: (message) => this.notes.push(message),
      environment: {
        THROUGHLINE_MODEL: "anthropic/claude-opus-5",
        THROUGHLINE_WINDOW_TOKENS: "200000",
        ANTHROPIC_API_KEY: "sk-test",
        ANTHROPIC_BASE_URL: this.provider.url,
        ...environment,
      },
      ...options,
    });
  }

  /** Returns the models that the provider was asked for, in order. */
  models(): readonly string[] {
    return this.provider.requests.map((request) => requestOf(request).model);
  }

  write(path: string, text: string): string {
    const file = join(this.path, path);
    mkdirSync(join(file, ".."), { recursive: true });
    writeFileSync(file, text);
    return file;
  }

  async start(): Promise<this> {
    mkdirSync(join(this.path, "work"));
    await this.provider.start();
    return this;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.provider.close();
    rmSync(this.path, { recursive: true, force: true });
  }
}
