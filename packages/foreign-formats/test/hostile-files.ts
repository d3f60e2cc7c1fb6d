/** Files that no reader may take for a transcript of its own, or fall over. By name, so that a failure says which. */
export const hostileFiles: Readonly<Record<string, string | Uint8Array>> = {
  "empty.jsonl": "",
  "spaces.jsonl": "   \n\n\t\n",
  "nul.jsonl": new Uint8Array(4096),
  "random.jsonl": Uint8Array.from({ length: 4096 }, (_, at) => (at * 167 + 13) & 0xff),
  "open-braces.jsonl": "{".repeat(60_000),
  "open-lists.json": "[".repeat(60_000),
  "deep.jsonl": `${'{"message":'.repeat(5000)}1${"}".repeat(5000)}\n`,
  "number.json": "1e309",
  "list-of-numbers.json": "[1,2,3]",
  "null.jsonl": "null\nnull\n",
  "proto.jsonl": '{"__proto__":{"type":"user"},"constructor":{"prototype":{"sessionId":"x"}}}\n',
  "html.jsonl": "<!doctype html><title>type user sessionId uuid</title>\n",
  "zip.jsonl": Buffer.concat([Buffer.from("PK\u0003\u0004"), Buffer.alloc(2000, 1)]),
  "gzip.jsonl": Buffer.concat([Buffer.from([0x1f, 0x8b, 8, 0]), Buffer.alloc(2000, 1)]),
  "log.jsonl": '{"level":30,"time":1,"pid":1,"msg":"a user message"}\n{"type":"request","id":"1"}\n',
  "events.jsonl": '{"type":"user","id":7}\n{"type":"message","payload":null}\n{"type":"session_meta"}\n',
  "pi.jsonl":
    '{"type":"session","version":3,"id":"a","timestamp":"2026-02-01T16:10:50.414Z","cwd":"/"}\n{"type":"message","id":"m","parentId":null,"timestamp":"2026-02-01T16:10:51.000Z","message":{"role":"user","content":"Hi"}}\n',
  "claw0.jsonl": '{"type":"user","content":"Hello","ts":1}\n{"type":"assistant","content":"Hi","ts":2.5}\n',
  "package.json": '{"name":"messages","version":"1.0.0","dependencies":{"history":"1"},"messages":"none"}\n',
  "settings.json": '{"mcpServers":{},"messages":[],"conversations":{}}\n',
};
