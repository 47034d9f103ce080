// The agent's page of metrics; docs/metrics.md lists them.
#ifndef REGATTA_DEVICE_AGENT_AGENT_METRICS_H_
#define REGATTA_DEVICE_AGENT_AGENT_METRICS_H_

#include "base/metrics/metrics_page.h"
#include "device_agent/loop/agent_runtime.h"
#include "device_agent/loop/agent_stats.h"
#include "device_agent/spawner/spawner_client.h"

namespace regatta {

// From any thread.
void CollectAgent(const AgentStats& stats, const AgentRuntime& runtime,
                  const SpawnerClient& spawner, MetricsPage& page);

}  // namespace regatta

#endif  // REGATTA_DEVICE_AGENT_AGENT_METRICS_H_
