// The thread pool of generated code. Compiled to LLVM IR with this program, for
// 64-bit and for 32-bit targets, and linked into every module that has a
// parallel loop, with internal visibility: each loaded module has its own pool.
//
// The IR is used for any ELF target, so nothing here may depend on one: the
// types of libc are byte buffers with room to spare, its functions are declared
// by hand, and no system header is included.
//
// Threads are created by the first parallel loop and joined when the module is
// unloaded. One loop at a time uses them; a call that finds them busy (from
// another thread) runs its loop alone. After a fork the child starts afresh.
typedef __SIZE_TYPE__ size_t;

extern void *aligned_alloc(size_t alignment, size_t size);
extern void free(void *memory);
extern int getpid(void);
extern int pthread_create(void *thread, const void *attributes,
                          void *(*start)(void *), void *argument);
extern int pthread_join(void *thread, void **result);  // pthread_t is a word
extern int sem_init(void *semaphore, int shared, unsigned value);
extern int sem_post(void *semaphore);
extern int sem_wait(void *semaphore);

// Polls before sleeping: about 20 microseconds, less than a wake-up costs.
enum { kSpins = 1 << 14 };
enum { kSemaphoreBytes = 64 };  // the largest known takes 32

// What a worker is told and tells.
enum { kIdle, kSleeping, kWork, kBusy, kQuit };
// What the calling thread waits for.
enum { kRunning, kCallerSleeping, kDone };

typedef struct {
  _Alignas(64) char semaphore[kSemaphoreBytes];
  int state;
  long slot;
  void *thread;
} Worker;

typedef void (*Body)(void *table, long iteration, long slot);

static struct {
  _Alignas(64) int owner;  // process of the call that has the pool, or 0
  int threads_pid;         // of the process that the threads belong to
  long workers;
  Worker *worker;
  // The loop being run.
  Body body;
  void *table;
  long extent;
  long grain;
  _Alignas(64) long next;       // first iteration that nobody took
  _Alignas(64) long unfinished; // workers that may still touch the loop
  int done;
  _Alignas(64) char semaphore[kSemaphoreBytes];
} pool;

static void Wait(void *semaphore) {
  while (sem_wait(semaphore) != 0) {
  }
}

static void RunShare(long slot) {
  for (;;) {
    const long first =
        __atomic_fetch_add(&pool.next, pool.grain, __ATOMIC_RELAXED);
    if (first >= pool.extent) return;
    long last = first + pool.grain;
    if (last > pool.extent) last = pool.extent;
    for (long i = first; i < last; ++i) pool.body(pool.table, i, slot);
  }
}

static void Finish(long workers) {
  if (__atomic_sub_fetch(&pool.unfinished, workers, __ATOMIC_ACQ_REL) != 0) {
    return;
  }
  if (__atomic_exchange_n(&pool.done, kDone, __ATOMIC_ACQ_REL) ==
      kCallerSleeping) {
    sem_post(pool.semaphore);
  }
}

static int Swap(int *state, int from, int to) {
  return __atomic_compare_exchange_n(state, &from, to, 0, __ATOMIC_ACQ_REL,
                                     __ATOMIC_ACQUIRE);
}

static void *Work(void *argument) {
  Worker *self = argument;
  for (;;) {
    int state = kIdle;
    for (int i = 0; i < kSpins && state == kIdle; ++i) {
      state = __atomic_load_n(&self->state, __ATOMIC_ACQUIRE);
    }
    if (state == kIdle) {
      if (Swap(&self->state, kIdle, kSleeping)) Wait(self->semaphore);
      state = __atomic_load_n(&self->state, __ATOMIC_ACQUIRE);
    }
    if (state == kQuit) return 0;
    // The caller takes back work that nobody has begun when it is through.
    if (state != kWork || !Swap(&self->state, kWork, kBusy)) continue;
    RunShare(self->slot);
    // Ready for the next loop before this one may end.
    __atomic_store_n(&self->state, kIdle, __ATOMIC_RELEASE);
    Finish(1);
  }
}

static void Tell(Worker *worker, int state) {
  if (__atomic_exchange_n(&worker->state, state, __ATOMIC_ACQ_REL) ==
      kSleeping) {
    sem_post(worker->semaphore);
  }
}

// As many workers as could be made; none is no error, only slow.
static void StartWorkers(long wanted, int pid) {
  pool.threads_pid = pid;
  pool.workers = 0;
  pool.worker = aligned_alloc(64, (size_t)wanted * sizeof(Worker));
  if (pool.worker == 0 || sem_init(pool.semaphore, 0, 0) != 0) return;
  for (long i = 0; i < wanted; ++i) {
    Worker *worker = &pool.worker[i];
    worker->state = kIdle;
    worker->slot = i + 1;
    if (sem_init(worker->semaphore, 0, 0) != 0 ||
        pthread_create(&worker->thread, 0, Work, worker) != 0) {
      return;
    }
    pool.workers = i + 1;
  }
}

static void RunShared(Body body, void *table, long extent, long workers) {
  pool.body = body;
  pool.table = table;
  pool.extent = extent;
  // At least eight pieces for each thread, where there are so many iterations;
  // no division, which some processors leave to a library.
  pool.grain = 1;
  while (pool.grain * 16 * (workers + 1) <= extent) pool.grain *= 2;
  pool.next = 0;
  pool.unfinished = workers + 1;
  pool.done = kRunning;
  for (long i = 0; i < workers; ++i) Tell(&pool.worker[i], kWork);
  RunShare(0);
  long finished = 1;
  for (long i = 0; i < workers; ++i) {
    finished += Swap(&pool.worker[i].state, kWork, kIdle);
  }
  Finish(finished);
  for (int i = 0; i < kSpins; ++i) {
    if (__atomic_load_n(&pool.done, __ATOMIC_ACQUIRE) == kDone) return;
  }
  if (Swap(&pool.done, kRunning, kCallerSleeping)) Wait(pool.semaphore);
}

// The pool is free when nobody has it, or somebody in a process that this one
// was forked from.
static int Acquire(int pid) {
  const int owner = __atomic_load_n(&pool.owner, __ATOMIC_ACQUIRE);
  return owner != pid && Swap(&pool.owner, owner, pid);
}

// Runs body(table, i, slot) for every i in [0, extent). Slots are below
// `threads`, and no two calls of `body` for one table that run at once share
// one. Returns when all are done.
void regatta_parallel_for(Body body, void *table, long extent, long threads) {
  const int pid = getpid();
  if (threads > 1 && extent > 1 && Acquire(pid)) {
    if (pool.threads_pid != pid) StartWorkers(threads - 1, pid);
    long workers = pool.workers;
    if (workers > extent - 1) workers = extent - 1;
    if (workers > 0) RunShared(body, table, extent, workers);
    __atomic_store_n(&pool.owner, 0, __ATOMIC_RELEASE);
    if (workers > 0) return;
  }
  for (long i = 0; i < extent; ++i) body(table, i, 0);
}

// On unloading. Calls still running would be a bug of the program: their code
// is about to be unmapped.
__attribute__((destructor)) static void StopWorkers(void) {
  if (pool.threads_pid != getpid()) return;
  for (long i = 0; i < pool.workers; ++i) Tell(&pool.worker[i], kQuit);
  for (long i = 0; i < pool.workers; ++i) {
    pthread_join(pool.worker[i].thread, 0);
  }
  pool.workers = 0;
  // Nobody looks at it any more: the threads are gone, and with no workers a
  // loop runs alone.
  free(pool.worker);
  pool.worker = 0;
}
