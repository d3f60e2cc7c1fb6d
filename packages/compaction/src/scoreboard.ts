/** Ranks texts by how often and how recently they were named. */
export class Scoreboard {
  private readonly scores = new Map<string, number>();
  private readonly halfLifeMessages: number;

  /** @param halfLifeMessages an item that was named this number of messages before the cut counts half */
  constructor(halfLifeMessages: number = 80) {
    this.halfLifeMessages = halfLifeMessages;
  }

  /** @param age the distance to the cut, in messages */
  add(text: string, weight: number, age: number): void {
    this.scores.set(text, (this.scores.get(text) ?? 0) + weight * 0.5 ** (age / this.halfLifeMessages));
  }

  /**
   * Adds texts that an earlier compaction ranked. They rank below the best new texts and keep their order, so that no
   * text disappears at once.
   */
  addRanked(texts: readonly string[]): void {
    const best = Math.max(1, ...this.scores.values());
    for (const [rank, text] of texts.entries()) {
      const score = (best / 2) * (1 - rank / texts.length);
      this.scores.set(text, (this.scores.get(text) ?? 0) + score);
    }
  }

  ranked(most: number): readonly string[] {
    return [...this.scores]
      .toSorted(([, one], [, other]) => other - one)
      .slice(0, most)
      .map(([text]) => text);
  }
}
