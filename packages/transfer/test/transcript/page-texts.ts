import { type RecordDraft, type SessionRef, sessionRef, type SessionStore } from "@throughline/core";
import { exportTranscript } from "../../src/transcript/export-transcript.ts";

type Options = Parameters<typeof exportTranscript>[2];

export const pageRef: SessionRef = sessionRef({ key: "agent:main:page" });

const clock = { nowMs: () => Date.parse("2026-11-30T12:00:00Z"), sleep: () => Promise.resolve() };

/** Exports a session and returns the text of each file. */
export async function pageTexts(
  store: SessionStore,
  options: Options,
): Promise<Awaited<ReturnType<typeof exportTranscript>> & { readonly texts: readonly string[] }> {
  const transcript = await exportTranscript(store, pageRef, { clock, ...options });
  const texts: string[] = [];
  for (const part of transcript.fileNames.keys()) {
    const pieces = await Array.fromAsync(transcript.file(part + 1));
    texts.push(Buffer.concat(pieces).toString());
  }
  return { ...transcript, texts };
}

export const said = (role: "assistant" | "user", content: unknown): RecordDraft => ({
  type: "message",
  message: { role, content },
});
