/**
 * What went over a connection, by PostgreSQL's own messages: 'Q' and 'S' of the client each ask for one answer that ends in
 * the server's 'Z'. A flight begins when the client sends something after the server has said something: that is what a
 * network charges for, however many messages there are in it.
 */
export class WireTraffic {
  flights: number = 0;
  /** Messages of the client and of the server by their letter, the server's after a "<". */
  readonly messages: Map<string, number> = new Map();

  /** Two readers for a new connection. */
  connection(): { client(chunk: Uint8Array): void; server(chunk: Uint8Array): void } {
    let hasServerSpoken = true;
    // The first message of a client has no letter.
    const client = messageReader(4, (letter) => this.#count(letter));
    const server = messageReader(5, (letter) => this.#count(`<${letter}`));
    return {
      client: (chunk) => {
        if (hasServerSpoken) this.flights += 1;
        hasServerSpoken = false;
        client(chunk);
      },
      server: (chunk) => {
        hasServerSpoken = true;
        server(chunk);
      },
    };
  }

  /** How often each of the letters was said. */
  said(...letters: readonly string[]): number {
    return letters.reduce((sum, letter) => sum + (this.messages.get(letter) ?? 0), 0);
  }

  #count(letter: string): void {
    this.messages.set(letter, (this.messages.get(letter) ?? 0) + 1);
  }
}

/** Finds the letters of messages in a stream: a letter and a length that counts itself. `firstHead` is 4 where the first has none. */
function messageReader(firstHead: 4 | 5, tell: (letter: string) => void): (chunk: Uint8Array) => void {
  let headBytes: number = firstHead;
  let head: number[] = [];
  let bodyBytes = 0;
  return (chunk) => {
    for (let at = 0; at < chunk.length;) {
      if (bodyBytes > 0) {
        const skipped = Math.min(bodyBytes, chunk.length - at);
        bodyBytes -= skipped;
        at += skipped;
        continue;
      }
      head.push(chunk[at] ?? 0);
      at += 1;
      if (head.length < headBytes) continue;
      const [a = 0, b = 0, c = 0, d = 0] = head.slice(-4);
      bodyBytes = a * 2 ** 24 + b * 2 ** 16 + c * 2 ** 8 + d - 4;
      if (headBytes === 5) tell(String.fromCharCode(head[0] ?? 0));
      headBytes = 5;
      head = [];
    }
  };
}
