type Labels = Readonly<Record<string, string>>;

/** Collects numbers. The server's registry writes them for Prometheus. */
export interface MetricsRegistry {
  counter(name: string, help: string): (labels?: Labels, by?: number) => void;
  gauge(name: string, help: string, read: () => number): void;
  histogram(name: string, help: string, bounds: readonly number[]): (labels: Labels, value: number) => void;
}

/** Collects nothing. */
export const noMetrics: MetricsRegistry = { counter: () => () => {}, gauge: () => {}, histogram: () => () => {} };

/** Counts the calls that the store does not have yet. */
export interface UnstoredCalls {
  readonly calls: number;
  /** Is the age of the oldest call in milliseconds; 0 without one. */
  readonly oldestMs: number;
}

export interface GatewayMetrics {
  call(labels: {
    readonly upstream: string;
    readonly api: string;
    readonly mode: string;
    readonly outcome: string;
  }): void;
  /**
   * Records the gateway's own latency in milliseconds: from the last request byte to the first answer byte, without the
   * upstream's time.
   */
  added(ms: number): void;
  tokens(upstream: string, classes: Readonly<Record<string, number>>): void;
  unrecorded(reason: string): void;
  /**
   * Counts a rebuilt request. `refused` means that the provider refused the rebuilt request as well; `failed` means
   * that it got no answer.
   */
  guard(action: string): void;
  /** Registers gauges for the calls that the store does not have yet. */
  journal(waiting: UnstoredCalls & { readonly bytes: number }): void;
}

const seconds: readonly number[] = [0.0005, 0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 1];

export function createGatewayMetrics(registry: MetricsRegistry): GatewayMetrics {
  const calls = registry.counter("throughline_gateway_calls_total", "Calls of models through the gateway.");
  const added = registry.histogram(
    "throughline_gateway_added_first_byte_seconds",
    "What the gateway adds to the time to the first byte.",
    seconds,
  );
  const tokens = registry.counter("throughline_gateway_tokens_total", "Tokens as providers counted them.");
  const unrecorded = registry.counter("throughline_gateway_unrecorded_total", "Calls that passed without a record.");
  const guarded = registry.counter("throughline_gateway_guard_total", "Requests that were rebuilt, by what was done.");
  return {
    guard: (action) => guarded({ action }),
    call: (labels) => calls(labels),
    added: (ms) => added({}, ms / 1000),
    tokens: (upstream, classes) => {
      for (const [name, count] of Object.entries(classes)) if (count > 0) tokens({ upstream, class: name }, count);
    },
    unrecorded: (reason) => unrecorded({ reason }),
    journal: (waiting) => {
      const gauge = (name: string, help: string, read: () => number): void =>
        registry.gauge(`throughline_gateway_${name}`, help, read);
      gauge("spool_bytes", "Bytes of calls that the store does not have yet.", () => waiting.bytes);
      gauge("unstored_calls", "Calls that the store does not have yet.", () => waiting.calls);
      gauge("oldest_unstored_seconds", "How long the oldest of them waits.", () => waiting.oldestMs / 1000);
    },
  };
}
