// How a run worker ends when it cannot go on. Each with the reason as the last
// line of standard error, as LOG writes it.
#ifndef REGATTA_DEVICE_AGENT_RUN_EXIT_CODES_H_
#define REGATTA_DEVICE_AGENT_RUN_EXIT_CODES_H_

namespace regatta {

// Before any candidate was called: not a candidate but the worker failed. A
// candidate may end the process with this code, but will not write the line.
inline constexpr int kRunWorkerFault = 113;
// Afterwards: what fails then (a channel that was closed, memory that is used
// up) is the candidate's doing.
inline constexpr int kRunWorkerBroken = 114;

}  // namespace regatta

#endif  // REGATTA_DEVICE_AGENT_RUN_EXIT_CODES_H_
