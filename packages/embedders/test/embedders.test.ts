import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Embedder } from "@throughline/core";
import { ollamaEmbedder, openaiCompatible } from "@throughline/embedders";
import {
  type EmbeddingFault,
  type EmbeddingServer,
  startEmbeddingServer,
} from "@throughline/test-kit/embedding-server";
import { createEmbedder } from "../src/create-embedder.ts";
import { localWith, type Transformers } from "../src/local.ts";

let server: EmbeddingServer;
beforeAll(async () => void (server = await startEmbeddingServer()));
afterAll(async () => server[Symbol.asyncDispose]());

const model = "test-model";
const dimensions = 64;
const embedders = (): readonly (readonly [string, Embedder])[] => [
  ["openai", openaiCompatible({ baseUrl: `${server.url}/v1`, model, dimensions })],
  ["ollama", ollamaEmbedder({ baseUrl: server.url, model, dimensions })],
];

function cosine(one: Float32Array, other: Float32Array): number {
  return one.reduce((sum, value, index) => sum + value * (other[index] ?? 0), 0);
}

describe("an embedder over a server", () => {
  it("returns a vector with norm 1 for each text, in the order of the texts", async () => {
    for (const [name, embedder] of embedders()) {
      const texts = ["we rented bicycles", "the database crashed", "a bike to hire"];
      const vectors = await embedder.embed(texts, { kind: "passage" });
      const [rent, crash, hire] = vectors as [Float32Array, Float32Array, Float32Array];
      expect(vectors, name).toHaveLength(3);
      expect(cosine(rent, rent)).toBeCloseTo(1, 5);
      expect(cosine(rent, hire)).toBeGreaterThan(cosine(rent, crash) + 0.3);
    }
  });

  it("sends the texts, the model and the key, and nothing else", async () => {
    await server.received();
    const keyed = openaiCompatible({ baseUrl: `${server.url}/v1/`, model, dimensions, apiKey: "k-1" });
    await keyed.embed(["one"], { kind: "query" });
    await ollamaEmbedder({ baseUrl: server.url, model, dimensions }).embed(["two"], { kind: "query" });
    expect(await server.received()).toEqual([
      {
        path: "/v1/embeddings",
        authorization: "Bearer k-1",
        body: { model, input: ["one"], encoding_format: "float" },
      },
      // Ollama cuts long texts without notice unless it is told not to.
      { path: "/api/embed", authorization: null, body: { model, input: ["two"], truncate: false } },
    ]);
  });

  it("puts the prefix of a known model before questions and passages", async () => {
    await server.received();
    const nomic = ollamaEmbedder({ baseUrl: server.url, model: "nomic-embed-text:v1.5", dimensions });
    await nomic.embed(["a"], { kind: "query" });
    await nomic.embed(["b"], { kind: "passage" });
    const bodies = (await server.received()).map(({ body }) => body["input"]);
    expect(bodies).toEqual([["search_query: a"], ["search_document: b"]]);
  });

  it("asks for shorter vectors only where the model can shorten them", async () => {
    await server.received();
    await openaiCompatible({ baseUrl: `${server.url}/v1`, model: "text-embedding-3-small", dimensions }).embed(["a"], {
      kind: "query",
    });
    expect((await server.received()).map(({ body }) => body["dimensions"])).toEqual([dimensions]);
  });

  it("sends no more texts in a request than the batch allows", async () => {
    await server.received();
    const embedder = openaiCompatible({ baseUrl: `${server.url}/v1`, model, dimensions, maxBatch: 2 });
    expect(await embedder.embed(["a", "b", "c"], { kind: "passage" })).toHaveLength(3);
    expect((await server.received()).map(({ body }) => body["input"])).toEqual([["a", "b"], ["c"]]);
  });

  const faults: readonly (readonly [EmbeddingFault, string, RegExp])[] = [
    ["429", "EMBEDDING_FAILED", /status 429, "Rate limit reached\."/],
    ["500", "EMBEDDING_FAILED", /status 500, "The model crashed\."/],
    ["html", "EMBEDDING_FAILED", /is no JSON/],
    ["reset", "EMBEDDING_FAILED", /did not answer/],
    ["redirect", "EMBEDDING_FAILED", /did not answer/],
    ["nan", "EMBEDDING_INVALID", /no finite number/],
    ["zero", "EMBEDDING_INVALID", /all numbers of a vector are 0/],
    ["short", "EMBEDDING_INVALID", /63 numbers instead of 64/],
    ["fewer", "EMBEDDING_INVALID", /2 texts were sent, and 1 vectors came back/],
  ];
  it.each(faults)("reports a server with the fault %s", async (fault, code, message) => {
    await server.control({ fault });
    for (const [, embedder] of embedders())
      await expect(embedder.embed(["one", "two"], { kind: "passage" })).rejects.toMatchObject({
        code,
        message: expect.stringMatching(message),
      });
    await server.control({});
  });

  it("refuses two vectors with one number", async () => {
    await server.control({ fault: "twice" });
    const [[, embedder] = []] = embedders();
    await expect(embedder?.embed(["one", "two"], { kind: "passage" })).rejects.toMatchObject({
      code: "EMBEDDING_INVALID",
    });
    await server.control({});
  });

  it("states when a server that limits calls can be asked again", async () => {
    await server.control({ fault: "429" });
    const [[, embedder] = []] = embedders();
    await expect(embedder?.embed(["one"], { kind: "query" })).rejects.toMatchObject({
      details: { status: 429, retryAfterMs: 7000 },
    });
    await server.control({});
  });

  it("ends with the caller's signal", async () => {
    await server.control({ slowMs: 5000 });
    const [[, embedder] = []] = embedders();
    const asked = embedder?.embed(["one"], { kind: "query", signal: AbortSignal.timeout(30) });
    await expect(asked).rejects.toMatchObject({ code: "ABORTED" });
    await server.control({});
  });

  it("never repeats the key in an error", async () => {
    const embedder = openaiCompatible({ baseUrl: "http://127.0.0.1:1/v1", model, dimensions, apiKey: "sk-secret-1" });
    const error: unknown = await embedder.embed(["a"], { kind: "query" }).catch((reason: unknown) => reason);
    expect(JSON.stringify(error, Object.getOwnPropertyNames(error as object))).not.toContain("sk-secret-1");
  });
});

describe("the options of an embedder", () => {
  it("refuse a model whose vectors have an unknown length, and take no length from an answer", () => {
    expect(() => ollamaEmbedder({ model: "my-model" })).toThrow(/The length of the vectors of "my-model" is not known/);
    expect(ollamaEmbedder({ model: "nomic-embed-text" })).toMatchObject({
      id: "ollama/nomic-embed-text@768",
      dimensions: 768,
    });
  });

  it("refuse an address with a password without repeating it", () => {
    const open = (): Embedder => openaiCompatible({ baseUrl: "https://a:geheim@example.com/v1", model, dimensions });
    expect(open).toThrow(/no http or https URL without a password/);
    expect(open).not.toThrow(/geheim/);
  });

  it("of a configuration use no key that is not named", async () => {
    await server.received();
    const environment = { OPENAI_API_KEY: "sk-present" };
    const choice = { provider: "openai-compatible", url: `${server.url}/v1`, model, dimensions };
    await createEmbedder(choice, environment).embed(["a"], { kind: "query" });
    await createEmbedder({ ...choice, keyVariable: "OPENAI_API_KEY" }, environment).embed(["a"], { kind: "query" });
    expect((await server.received()).map(({ authorization }) => authorization)).toEqual([null, "Bearer sk-present"]);
    expect(() => createEmbedder({ ...choice, keyVariable: "OTHER" }, environment)).toThrow(/OTHER .* is not set/);
    expect(() => createEmbedder({ ...choice, url: undefined }, environment)).toThrow(/names no `url`/);
    expect(() => createEmbedder({ ...choice, provider: "voyage" }, environment)).toThrow(/no provider "voyage"/);
  });
});

describe("a model in a folder", () => {
  function library(asked: unknown[]): Transformers {
    return {
      env: { allowRemoteModels: true, allowLocalModels: false, localModelPath: "elsewhere" },
      async pipeline(task, path, options) {
        asked.push([task, path, options, { ...this.env }]);
        return async (texts, how) => {
          asked.push([texts, how]);
          return { dims: [texts.length, 2], data: new Float32Array(texts.length * 2).fill(3) };
        };
      },
    };
  }

  it("is loaded once, from the folder, and never from the network", async () => {
    const asked: unknown[] = [];
    const embedder = localWith({ modelPath: "/models/tiny", dimensions: 2, pooling: "cls" }, async () =>
      library(asked),
    );
    await embedder.embed(["a"], { kind: "query" });
    const [vector] = await embedder.embed(["b"], { kind: "passage" });
    expect(vector).toEqual(new Float32Array([Math.SQRT1_2, Math.SQRT1_2]));
    expect(asked).toEqual([
      [
        "feature-extraction",
        "/models/tiny",
        { dtype: "q8", local_files_only: true },
        { allowRemoteModels: false, allowLocalModels: true, localModelPath: "" },
      ],
      [["a"], { pooling: "cls", normalize: true }],
      [["b"], { pooling: "cls", normalize: true }],
    ]);
  });

  it("names the package that is not installed", async () => {
    const missing = Object.assign(new Error("Cannot find package '@huggingface/transformers' imported from here"), {
      code: "ERR_MODULE_NOT_FOUND",
    });
    const embedder = localWith({ modelPath: "/models/tiny", dimensions: 2 }, () => Promise.reject(missing));
    await expect(embedder.embed(["a"], { kind: "query" })).rejects.toMatchObject({
      code: "MODEL_SDK_MISSING",
      remedy: "Install it: npm install @huggingface/transformers",
    });
  });

  it("is asked again after a failure", async () => {
    const asked: unknown[] = [];
    let calls = 0;
    const embedder = localWith({ modelPath: "/models/tiny", dimensions: 2 }, async () => {
      calls += 1;
      if (calls === 1) throw new Error("no such file");
      return library(asked);
    });
    await expect(embedder.embed(["a"], { kind: "query" })).rejects.toMatchObject({ code: "EMBEDDING_FAILED" });
    expect(await embedder.embed(["a"], { kind: "query" })).toHaveLength(1);
  });
});
