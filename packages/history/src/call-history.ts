import type { CallSite } from "./replay-item.ts";

/** The calls under one id, in the order they were made: providers use ids again. */
export class CallHistory {
  /** Results under the id in the whole log. */
  resultCount = 0;
  /** Whether a further result under the id would change what was decided about an earlier call. */
  isUndecided = false;
  /** Null for none, alone while there is one: of thousands of ids nearly every one is called once. */
  private sites: CallSite | CallSite[] | null = null;
  private wasCalled = false;
  private readonly base: CallHistory | null;
  /** Calls of the newest span that have no result yet; those of failed replies apart. */
  private span = -1;
  private openSite: CallSite | null = null;
  private openSites: Queue<CallSite> | null = null;
  private openFailedSites: Queue<CallSite> | null = null;
  /** The calls of the newest turn by what they ask. The first one waits: most ids never come twice. */
  private turn = -1;
  private first: CallSite | null = null;
  private byRequest: Map<string, CallSite> | null = null;
  private keptCount = 0;

  /** @param base what was settled before; it is read and left alone */
  constructor(base: CallHistory | null = null) {
    this.base = base;
    if (base === null) return;
    this.resultCount = base.resultCount;
    this.keptCount = base.keptCount;
    this.turn = base.turn;
    this.first = base.first;
  }

  /** A call that has its result already, before all others. */
  begin(site: CallSite, turn: number): void {
    this.resultCount++;
    this.isStoredTwice(site, turn);
    this.open(site, -1);
    this.openSite = null;
  }

  /**
   * Some writers store a call in its reply and once more as a record of its own. A provider that uses an id again in
   * one turn differs from that in what it asks, or in that both calls have a result.
   */
  isStoredTwice(site: CallSite, turn: number): boolean {
    const earlier = this.sameRequest(site, turn);
    if (earlier !== null) {
      this.isUndecided = true;
      const isOpen = earlier.result === null && earlier.owner !== site.owner;
      if (isOpen || this.resultCount <= this.keptCount) return true;
    }
    this.keptCount++;
    this.remember(site);
    return false;
  }

  private sameRequest(site: CallSite, turn: number): CallSite | null {
    if (turn !== this.turn) {
      this.turn = turn;
      this.first = null;
      this.byRequest = null;
    }
    if (this.first === null) return null;
    this.byRequest ??= new Map([[requestOf(this.first), this.first]]);
    const request = requestOf(site);
    return this.byRequest.get(request) ?? this.settledRequest(request, turn);
  }

  private settledRequest(request: string, turn: number): CallSite | null {
    return this.base?.turn === turn ? (this.base.byRequest?.get(request) ?? null) : null;
  }

  private remember(site: CallSite): void {
    if (this.first === null) this.first = site;
    else this.byRequest?.set(requestOf(site), site);
  }

  /** Adds a call to those a result may answer. */
  open(site: CallSite, span: number): void {
    if (span !== this.span) {
      this.span = span;
      this.openSite = null;
      this.openSites = null;
      this.openFailedSites = null;
    }
    if (this.sites === null) this.sites = site;
    else if (Array.isArray(this.sites)) this.sites.push(site);
    else this.sites = [this.sites, site];
    this.wasCalled = true;
    if (site.owner.isFailed) (this.openFailedSites ??= new Queue()).push(site);
    else if (this.openSite === null && this.openSites === null) this.openSite = site;
    else (this.openSites ??= new Queue()).push(site);
  }

  /** The first open call of the span. A reply that was repeated after a failure has priority. */
  takeOpen(span: number): CallSite | null {
    if (span !== this.span) return null;
    const { openSite } = this;
    this.openSite = null;
    return openSite ?? this.openSites?.shift() ?? this.openFailedSites?.shift() ?? null;
  }

  isKnown(): boolean {
    return this.wasCalled || (this.base?.isKnown() ?? false);
  }

  /** Forgets the calls that have their result: nothing can happen to them any more. */
  settle(): void {
    const open = this.unansweredSites();
    this.sites = open.length === 0 ? null : [...open];
  }

  /** All calls without a result; those of failed replies only when there are no others. */
  unanswered(): readonly CallSite[] {
    const open = this.unansweredSites();
    if (open.length === 0) return open;
    const valid = open.filter((site) => !site.owner.isFailed);
    return valid.length > 0 ? valid : open;
  }

  private unansweredSites(): readonly CallSite[] {
    const { sites } = this;
    if (sites === null) return none;
    if (Array.isArray(sites)) return sites.filter((site) => site.result === null);
    return sites.result === null ? [sites] : none;
  }
}

const none: readonly CallSite[] = [];

/** Array.shift moves every element; this does not. */
class Queue<Item> {
  private readonly items: Item[] = [];
  private next = 0;

  push(item: Item): void {
    this.items.push(item);
  }

  shift(): Item | null {
    return this.items[this.next++] ?? null;
  }
}

function requestOf(site: CallSite): string {
  return JSON.stringify([site.call.name, site.call.arguments], (_key, field: unknown) => {
    if (typeof field !== "object" || field === null || Array.isArray(field)) return field;
    return Object.fromEntries(Object.entries(field).toSorted(([one], [other]) => (one < other ? -1 : 1)));
  });
}
