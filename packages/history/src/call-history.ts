import type { CallSite } from "./replay-item.ts";

/** Tracks the calls under one id in order, because providers reuse ids. */
export class CallHistory {
  resultCount = 0;
  /** Is true if another result under the id would change the decision about an earlier call. */
  isUndecided = false;
  /**
   * Holds null, one call, or a list. Most of the thousands of ids have one call, so a list for each would waste memory.
   */
  private sites: CallSite | CallSite[] | null = null;
  private wasCalled = false;
  private readonly base: CallHistory | null;
  /**
   * Holds the calls of the newest span that have no result yet. Calls of failed replies are separate, because they have
   * a lower priority.
   */
  private span = -1;
  private openSite: CallSite | null = null;
  private openSites: Queue<CallSite> | null = null;
  private openFailedSites: Queue<CallSite> | null = null;
  /**
   * Maps the calls of the newest turn by tool and arguments. The map is built only at the second call, because most ids
   * occur once.
   */
  private turn = -1;
  private first: CallSite | null = null;
  private byRequest: Map<string, CallSite> | null = null;
  private keptCount = 0;

  /**
   * Starts a history, optionally after a settled one.
   * @param base the settled history, which is read and never changed
   */
  constructor(base: CallHistory | null = null) {
    this.base = base;
    if (base === null) return;
    this.resultCount = base.resultCount;
    this.keptCount = base.keptCount;
    this.turn = base.turn;
    this.first = base.first;
  }

  begin(site: CallSite, turn: number): void {
    this.resultCount++;
    this.isStoredTwice(site, turn);
    this.open(site, -1);
    this.openSite = null;
  }

  /**
   * Detects a call that its writer stored twice: in the reply and again as its own record. A provider that reuses an id
   * in one turn differs, because the request differs or both calls have a result.
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
    if (site.owner.isUnsent) (this.openFailedSites ??= new Queue()).push(site);
    else if (this.openSite === null && this.openSites === null) this.openSite = site;
    else (this.openSites ??= new Queue()).push(site);
  }

  /**
   * Returns the first open call of the span. Calls of failed replies come last, because a repeated reply takes
   * precedence.
   */
  takeOpen(span: number): CallSite | null {
    if (span !== this.span) return null;
    const { openSite } = this;
    this.openSite = null;
    return openSite ?? this.openSites?.shift() ?? this.openFailedSites?.shift() ?? null;
  }

  isKnown(): boolean {
    return this.wasCalled || (this.base?.isKnown() ?? false);
  }

  /** Drops the calls that have a result, because no later record can change them. */
  settle(): void {
    const open = this.unansweredSites();
    this.sites = open.length === 0 ? null : [...open];
  }

  /** Returns all calls without a result. Calls of failed replies count only if no other call is open. */
  unanswered(): readonly CallSite[] {
    const open = this.unansweredSites();
    if (open.length === 0) return open;
    const valid = open.filter((site) => !site.owner.isUnsent);
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

/** `Array.shift` moves every element; this queue only advances an index. */
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
