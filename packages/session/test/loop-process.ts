// A process with a loop of its own: it opens a turn, says so on stdout, and works until it is killed.
// node test/loop-process.ts <store> <path> <leaseMs>
import process from "node:process";
import { assistantMessage, userMessage } from "@throughline/core";
import { openTurn } from "@throughline/session";
import { openStore } from "./process-store.ts";
import { key } from "./session-fixture.ts";

const [kind = "", path = "", leaseMs = "30000"] = process.argv.slice(2);
await using store = openStore(kind, path);
await using turn = await openTurn(store, key, { drafts: [userMessage("Work for ever")], leaseMs: Number(leaseMs) });
const call = { type: "toolCall", id: "call-1", name: "work", arguments: {} } as const;
await turn.append([assistantMessage([call], { stopReason: "toolUse" })]);
process.stdout.write("working\n");
await new Promise((resolve) => setTimeout(resolve, 60_000));
