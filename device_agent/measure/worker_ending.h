// What the end of a run worker says about the trial. Pure.
#ifndef REGATTA_DEVICE_AGENT_MEASURE_WORKER_ENDING_H_
#define REGATTA_DEVICE_AGENT_MEASURE_WORKER_ENDING_H_

#include <string>

#include "regatta/v1/worker.pb.h"

namespace regatta {

struct Ending {
  v1::Outcome outcome = v1::OUTCOME_UNSPECIFIED;
  std::string detail;  // one line
};

// The outcome of a run worker that ended before it had answered. `stage` says
// what it was doing ("in the first call"); the limits are those it was started
// with.
Ending JudgeRunWorker(const v1::Exited& exited, const std::string& stage,
                      int64_t wall_limit_ms, int64_t memory_limit_bytes);

// Of a run worker that got too little of a processor to be judged: the board's
// fault. `limit_ms` is what it was given.
Ending JudgeStarved(int64_t starved_ns, int64_t limit_ms,
                    const std::string& stage);

// Of a build worker that ended inside a request: a compile error where it died
// of what it compiled; the board's fault where it was killed from outside.
Ending JudgeBuildWorker(const v1::Exited& exited, int64_t memory_limit_bytes);

}  // namespace regatta

#endif  // REGATTA_DEVICE_AGENT_MEASURE_WORKER_ENDING_H_
