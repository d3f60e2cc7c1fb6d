export { createSession, freeRef, sessionExists, type CreateSessionOptions } from "./create-session.ts";
export { isTerminalKey, terminalSessionKey } from "./terminal-keys.ts";
