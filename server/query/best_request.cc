#include "server/query/best_request.h"

#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "proto/device_class.h"
#include "proto/policy_limits.h"
#include "server/query/best_query.h"

namespace regatta {
namespace {

absl::StatusOr<std::optional<ClassFacts>> FactsOf(
    const BestRequestContext& context, const std::string& device_class) {
  if (context.facts_of_class) return context.facts_of_class(device_class);
  ASSIGN_OR_RETURN(std::vector<ClassFacts> facts,
                   context.source->FactsOfClasses());
  for (ClassFacts& one : facts) {
    if (one.device_class == device_class) {
      return std::optional<ClassFacts>(std::move(one));
    }
  }
  return std::optional<ClassFacts>();
}

absl::StatusOr<std::string> TargetTextOf(const BestRequestContext& context,
                                         const std::string& device_class) {
  if (context.target_of_class) {
    if (const auto text = context.target_of_class(device_class)) return *text;
  }
  ASSIGN_OR_RETURN(auto facts, FactsOf(context, device_class));
  if (facts) return std::move(facts->target);
  return absl::NotFoundError(
      absl::StrCat("the target of class ", device_class,
                   " is not known until one of its boards registers; give the "
                   "target instead"));
}

absl::StatusOr<std::string> ProtocolOf(const BestRequestContext& context,
                                       const std::string& device_class) {
  if (context.measure_protocol) {
    std::string known = context.measure_protocol(device_class);
    if (!known.empty()) return known;
  }
  ASSIGN_OR_RETURN(auto facts, FactsOf(context, device_class));
  return facts ? std::move(facts->measure_protocol) : std::string();
}

absl::StatusOr<std::shared_ptr<const CompletedTarget>> ResolveTarget(
    const BestRequestContext& context, const v1::BestRequest& request,
    BestMemo& memo) {
  const auto make = MakeTargetWith(context.complete, context.compiler_version);
  if (!request.target().empty()) {
    auto target = memo.Complete(request.target(), make);
    if (!target.ok()) return Annotate(target.status(), "target");
    return target;
  }
  ASSIGN_OR_RETURN(const std::string text,
                   TargetTextOf(context, request.device_class()));
  return memo.Complete(text, make);
}

absl::Status ResolveWorkload(const BestRequestContext& context,
                             const std::string& text, BestMemo& memo,
                             BestQuestion& question) {
  if (context.find_workload) {
    if (auto known = context.find_workload(text)) {
      question.workload_key = std::move(known->key);
      question.workload_text = std::move(known->text);
      return absl::OkStatus();
    }
  }
  auto workload = memo.Parse(text);
  if (!workload.ok()) return Annotate(workload.status(), "workload");
  question.workload = *std::move(workload);
  question.workload_key = question.workload->key;
  question.workload_text = question.workload->text;
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<v1::Policy> NormalisePolicy(const v1::Policy& policy) {
  v1::Policy full = policy;
  if (full.threads() == 0) full.set_threads(1);
  if (full.threads() < 0 || full.threads() > kMaxThreads) {
    return absl::InvalidArgumentError(
        absl::StrCat("policy.threads is ", full.threads(),
                     "; it must be from 1 to ", kMaxThreads));
  }
  if (full.cache() == v1::CACHE_STATE_UNSPECIFIED) {
    full.set_cache(v1::CACHE_STATE_WARM);
  }
  if (full.cache() != v1::CACHE_STATE_WARM &&
      full.cache() != v1::CACHE_STATE_COLD) {
    return absl::InvalidArgumentError(
        absl::StrCat("policy.cache is ", static_cast<int>(full.cache()),
                     "; it must be warm (1) or cold (2)"));
  }
  return full;
}

absl::StatusOr<v1::BestAnswer> AnswerBestRequest(
    const BestRequestContext& context, const v1::BestRequest& request) {
  const std::string& device_class = request.device_class();
  if (device_class.empty() == request.target().empty()) {
    return absl::InvalidArgumentError(
        device_class.empty()
            ? "device_class and target are both empty; one of them is needed"
            : "device_class and target are both given; only one may be");
  }
  BestQuestion question;
  ASSIGN_OR_RETURN(question.policy, NormalisePolicy(request.policy()));
  if (!device_class.empty() && context.check_class) {
    RETURN_IF_ERROR(
        context.check_class(device_class, question.policy.threads()));
  }
  BestMemo own;
  BestMemo& memo = context.memo != nullptr ? *context.memo : own;
  RETURN_IF_ERROR(ResolveWorkload(context, request.workload(), memo, question));
  question.device_class = device_class;
  ASSIGN_OR_RETURN(question.target, ResolveTarget(context, request, memo));
  const auto is_simulated = [&context](const std::string& name) {
    return IsSimulatedClass(name) ||
           (context.is_simulated && context.is_simulated(name));
  };
  question.simulated = is_simulated(device_class);
  BestContext best;
  best.source = context.source;
  best.memo = &memo;
  if (!device_class.empty()) {
    ASSIGN_OR_RETURN(best.measure_protocol, ProtocolOf(context, device_class));
  }
  best.is_simulated = is_simulated;
  if (context.taken_target && !device_class.empty()) {
    best.taken_by = context.taken_by;
    best.taken_target = context.taken_target(device_class);
  }
  best.gives_binary = context.gives_binary;
  best.now_unix_ms = context.now_unix_ms;
  return AnswerBest(best, question);
}

}  // namespace regatta
