#include "proto/outcome_metrics.h"

#include <utility>

#include "proto/outcome_names.h"

namespace regatta {
namespace {

double CountOf(const auto& counts, const auto& key) {
  const auto found = counts.find(key);
  return found == counts.end() ? 0 : static_cast<double>(found->second);
}

}  // namespace

void AddOutcomes(std::string_view name, std::string_view help,
                 const std::map<v1::Outcome, int64_t>& counts,
                 MetricsPage& page) {
  for (int number = v1::Outcome_MIN; number <= v1::Outcome_MAX; ++number) {
    const auto outcome = static_cast<v1::Outcome>(number);
    if (!v1::Outcome_IsValid(number) || outcome == v1::OUTCOME_UNSPECIFIED) {
      continue;
    }
    page.Counter(name, help, CountOf(counts, outcome),
                 {{"outcome", OutcomeName(outcome)}});
  }
}

void AddVerdicts(std::string_view name, std::string_view help,
                 const std::map<v1::AckStatus, int64_t>& counts,
                 MetricsPage& page) {
  constexpr std::pair<v1::AckStatus, const char*> kVerdicts[] = {
      {v1::ACK_STATUS_STORED, "stored"},
      {v1::ACK_STATUS_DUPLICATE, "duplicate"},
      {v1::ACK_STATUS_REJECTED, "rejected"}};
  for (const auto& [status, verdict] : kVerdicts) {
    page.Counter(name, help, CountOf(counts, status), {{"verdict", verdict}});
  }
}

}  // namespace regatta
