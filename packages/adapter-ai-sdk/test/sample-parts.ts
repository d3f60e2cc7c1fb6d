const text = (words: string, state: string): object => ({ type: "text", text: words, state });

/** Parts of every type of versions 6 and 7. */
export const partTypes: readonly object[] = [
  text("words", "done"),
  text("half", "streaming"),
  { type: "text", text: "" },
  { type: "reasoning", text: "hm", providerMetadata: { anthropic: { signature: "c2ln" } } },
  { type: "reasoning", text: "", state: "streaming" },
  { type: "step-start" },
  { type: "source-url", sourceId: "s1", url: "https://example.org", title: "T" },
  { type: "source-document", sourceId: "s2", mediaType: "text/plain", title: "D", filename: "d.txt" },
  { type: "file", mediaType: "image/png", url: "data:image/png;base64,AA==", filename: "a.png" },
  { type: "data-weather", id: "w", data: { city: "Ghent", deep: [1, null] } },
  { type: "tool-clock", toolCallId: "t1", state: "input-streaming", input: { a: 1 }, rawInput: '{"a":1' },
  { type: "tool-clock", toolCallId: "t2", state: "input-available", input: {} },
  {
    type: "tool-clock",
    toolCallId: "t3",
    state: "output-available",
    input: {},
    output: { at: "noon" },
    preliminary: true,
  },
  { type: "tool-clock", toolCallId: "t4", state: "output-error", input: {}, errorText: "broke" },
  { type: "dynamic-tool", toolName: "any", toolCallId: "t5", state: "output-available", input: "text", output: "x" },
  { type: "tool-clock", toolCallId: "t6", state: "approval-requested", input: {}, approval: { id: "ap1" } },
  {
    type: "tool-clock",
    toolCallId: "t7",
    state: "approval-responded",
    input: {},
    approval: { id: "ap2", approved: true },
  },
  { type: "tool-clock", toolCallId: "t8", state: "output-denied", input: {}, approval: { id: "ap3", approved: false } },
];

/** Numbers that look random and are the same in every run. */
export function numbers(seed: number): () => number {
  let state = seed;
  return () => (state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0) / 2 ** 32;
}
