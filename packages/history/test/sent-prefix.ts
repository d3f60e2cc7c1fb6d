/** What is sent, up to where a later call may go on: without the brackets and quotes that close it. */
export function openEnd(messages: readonly unknown[]): string {
  return JSON.stringify(messages).replace(/["\]}]+$/, "");
}
