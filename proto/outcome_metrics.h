// Families of a daemon's page that count by outcome or by what was answered,
// each value of it present from the start.
#ifndef REGATTA_PROTO_OUTCOME_METRICS_H_
#define REGATTA_PROTO_OUTCOME_METRICS_H_

#include <cstdint>
#include <map>
#include <string_view>

#include "base/metrics/metrics_page.h"
#include "regatta/v1/fleet_service.pb.h"
#include "regatta/v1/trial.pb.h"

namespace regatta {

// Label "outcome".
void AddOutcomes(std::string_view name, std::string_view help,
                 const std::map<v1::Outcome, int64_t>& counts,
                 MetricsPage& page);
// Label "verdict".
void AddVerdicts(std::string_view name, std::string_view help,
                 const std::map<v1::AckStatus, int64_t>& counts,
                 MetricsPage& page);

}  // namespace regatta

#endif  // REGATTA_PROTO_OUTCOME_METRICS_H_
