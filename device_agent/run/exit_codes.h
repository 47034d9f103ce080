// How a run worker ends when not the candidate but the worker failed.
#ifndef REGATTA_DEVICE_AGENT_RUN_EXIT_CODES_H_
#define REGATTA_DEVICE_AGENT_RUN_EXIT_CODES_H_

namespace regatta {

// With the reason as the last line of standard error.
inline constexpr int kRunWorkerFault = 113;

}  // namespace regatta

#endif  // REGATTA_DEVICE_AGENT_RUN_EXIT_CODES_H_
