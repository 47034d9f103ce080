#include "device_agent/agent_metrics.h"

namespace regatta {
namespace {

const char* NameOf(v1::ExitReason reason) {
  switch (reason) {
    case v1::EXIT_REASON_EXITED:
      return "exited";
    case v1::EXIT_REASON_SIGNALLED:
      return "signalled";
    case v1::EXIT_REASON_KILLED_ON_REQUEST:
      return "killed_on_request";
    case v1::EXIT_REASON_WALL_LIMIT:
      return "wall_limit";
    case v1::EXIT_REASON_MEMORY_LIMIT:
      return "memory_limit";
    case v1::EXIT_REASON_SANDBOX:
      return "sandbox";
    case v1::EXIT_REASON_STARVED:
      return "starved";
    default:
      return "unknown";
  }
}

}  // namespace

void CollectAgent(const AgentStats& stats, const AgentRuntime& runtime,
                  const SpawnerClient& spawner, MetricsPage& page) {
  stats.Collect(page);
  const AgentRuntime::Vitals vitals = runtime.vitals();
  page.Gauge("regatta_agent_spooled_results",
             "Results that the server has not acknowledged",
             static_cast<double>(vitals.spooled));
  page.Gauge("regatta_agent_spool_used_ratio",
             "Share of the spool's limits in use; work is refused above 0.8",
             vitals.spool_used);
  page.Gauge("regatta_agent_held_assignments", "Assignments that it holds",
             static_cast<double>(vitals.held));
  for (const auto& [role, counts] : spawner.worker_counts()) {
    page.Counter("regatta_agent_workers_started_total",
                 "Worker processes that were started, by role",
                 static_cast<double>(counts.started), {{"role", role}});
    for (const auto& [reason, count] : counts.exited) {
      page.Counter("regatta_agent_workers_ended_total",
                   "Worker processes that ended, by role and reason",
                   static_cast<double>(count),
                   {{"role", role}, {"reason", NameOf(reason)}});
    }
  }
}

}  // namespace regatta
