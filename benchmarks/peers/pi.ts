// pi's SessionManager: appendFileSync a message, without fsync and without a lock.
import { callId, turnParts, turnUsage, type Contender } from "./contender.ts";

interface Manager {
  appendMessage(message: unknown): string;
  buildSessionContext(): { readonly messages: readonly unknown[] };
  getSessionFile(): string | undefined;
}
interface Managers {
  create(cwd: string, folder: string): Manager;
  open(path: string, folder: string): Manager;
}

/** Opens a new session. */
export async function open(folder: string): Promise<Contender> {
  const name = "@earendil-works/pi-coding-agent";
  const { SessionManager: managers } = (await import(name)) as { readonly SessionManager: Managers };
  const manager = managers.create(folder, folder);
  const origin = { api: "anthropic-messages", provider: "anthropic", model: "claude", usage: turnUsage };
  return {
    turn(index) {
      const timestamp = Date.now();
      const id = callId(index);
      const call = { type: "toolCall", id, name: turnParts.tool, arguments: turnParts.toolInput };
      const texts = (text: string): unknown => [{ type: "text", text }];
      const toolName = turnParts.tool;
      manager.appendMessage({ role: "user", content: turnParts.question, timestamp });
      manager.appendMessage({ role: "assistant", content: [call], ...origin, stopReason: "toolUse", timestamp });
      const content = texts(turnParts.result);
      manager.appendMessage({ role: "toolResult", toolCallId: id, toolName, content, isError: false, timestamp });
      const answer = texts(turnParts.answer);
      manager.appendMessage({ role: "assistant", content: answer, ...origin, stopReason: "stop", timestamp });
      return Promise.resolve();
    },
    reopen() {
      const path = manager.getSessionFile();
      if (path === undefined) throw new Error("pi wrote no file.");
      return Promise.resolve(managers.open(path, folder).buildSessionContext().messages.length);
    },
    close: () => Promise.resolve(),
  };
}
