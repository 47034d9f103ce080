#include "tests/chaos/questions.h"

#include <utility>

namespace regatta::testing {
namespace {

// A server that is stopped does not answer.
constexpr absl::Duration kPatience = absl::Seconds(5);

std::vector<std::string> InJson(std::vector<std::string> arguments) {
  arguments.push_back("--json");
  return arguments;
}

std::optional<Json> DocumentOf(const ProcessResult& result) {
  if (result.exit_code != 0) return std::nullopt;
  Json document = Json::parse(result.out, nullptr, /*allow_exceptions=*/false);
  if (document.is_discarded()) return std::nullopt;
  return document;
}

}  // namespace

std::optional<Json> AskNow(const Cluster& cluster,
                           std::vector<std::string> arguments,
                           absl::Duration limit, std::string* why) {
  const ProcessResult result =
      cluster.Ask(InJson(std::move(arguments)))->Wait(limit);
  if (why != nullptr) *why = result.timed_out ? "no answer" : result.err;
  return DocumentOf(result);
}

Question::Question(const Cluster* cluster, absl::Duration every,
                   std::vector<std::string> arguments, Answered answered)
    : cluster_(cluster),
      every_(every),
      arguments_(InJson(std::move(arguments))),
      answered_(std::move(answered)) {}

void Question::Tend() {
  const SteadyTime now = RealClock().Steady();
  if (asked_ == nullptr) {
    if (now < next_) return;
    asked_ = cluster_->Ask(arguments_);
    asked_at_ = now;
    return;
  }
  if (asked_->Running() && now - asked_at_ < kPatience) return;
  const std::optional<Json> document =
      DocumentOf(asked_->Wait(absl::ZeroDuration()));
  asked_.reset();
  next_ = now + every_;
  if (document.has_value()) answered_(*document);
}

}  // namespace regatta::testing
