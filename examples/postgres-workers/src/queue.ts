import pg from "pg";

/** A message that waits for an answer. */
export interface Job {
  readonly id: string;
  readonly user: string;
  readonly text: string;
}

/** A queue in the same database as the sessions. */
export interface Queue {
  add(job: Job): Promise<void>;
  /** The oldest message that nobody has, of a user of whom nobody answers an earlier one; it is this worker's for the lease. */
  take(): Promise<Job | null>;
  renew(job: Job): Promise<void>;
  complete(job: Job): Promise<void>;
  close(): Promise<void>;
}

/** Makes the table where there is none. `leaseMs`: a job that nobody renews is due again after so many milliseconds. */
export async function createQueue(url: string, leaseMs: number): Promise<Queue> {
  const pool = new pg.Pool({ connectionString: url, max: 2 });
  pool.on("error", (error) => console.error(error)); // the next statement has a new connection
  const until = `now() + ${Number(leaseMs)} * interval '1 millisecond'`;
  await pool.query(`CREATE TABLE IF NOT EXISTS jobs (
    place bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, id text UNIQUE NOT NULL, "user" text NOT NULL, text text NOT NULL,
    taken_until timestamptz NOT NULL DEFAULT '-infinity')`);
  return {
    async add({ id, user, text }) {
      const values = [id, user, text];
      await pool.query(`INSERT INTO jobs (id, "user", text) VALUES ($1, $2, $3) ON CONFLICT (id) DO NOTHING`, values);
    },
    async take() {
      const { rows } = await pool.query<Job>(`UPDATE jobs SET taken_until = ${until} WHERE place = (
        SELECT place FROM jobs j WHERE taken_until < now()
          AND NOT EXISTS (SELECT FROM jobs earlier WHERE earlier."user" = j."user" AND earlier.place < j.place)
        ORDER BY place LIMIT 1 FOR UPDATE SKIP LOCKED) RETURNING id, "user", text`);
      return rows[0] ?? null;
    },
    async renew({ id }) {
      await pool.query(`UPDATE jobs SET taken_until = ${until} WHERE id = $1`, [id]);
    },
    async complete({ id }) {
      await pool.query("DELETE FROM jobs WHERE id = $1", [id]);
    },
    close: () => pool.end(),
  };
}
