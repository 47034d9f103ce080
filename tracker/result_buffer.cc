#include "tracker/result_buffer.h"

#include <algorithm>
#include <utility>

namespace regatta {

ResultBuffer::Added ResultBuffer::Add(std::string_view server_id,
                                      std::string_view agent_id,
                                      const v1::TrialResult& result) {
  Key key{std::string(server_id), result.spec().trial_id(), result.attempt(),
          std::string(agent_id)};
  if (entries_.contains(key)) return Added::kKnown;
  const int64_t bytes = static_cast<int64_t>(result.ByteSizeLong());
  if (!agent_id.empty() &&
      (size() >= max_results_ || bytes_ + bytes > max_bytes_)) {
    return Added::kFull;
  }
  bytes_ += bytes;
  entries_.emplace(std::move(key), Entry{result, ++sequence_, bytes});
  return Added::kNew;
}

std::vector<std::string> ResultBuffer::Acknowledge(std::string_view server_id,
                                                   std::string_view trial_id,
                                                   int attempt) {
  std::vector<std::string> agents;
  auto it = entries_.lower_bound(
      Key{std::string(server_id), std::string(trial_id), attempt, ""});
  while (it != entries_.end() && std::get<0>(it->first) == server_id &&
         std::get<1>(it->first) == trial_id &&
         std::get<2>(it->first) == attempt) {
    if (!std::get<3>(it->first).empty()) {
      agents.push_back(std::get<3>(it->first));
    }
    bytes_ -= it->second.bytes;
    it = entries_.erase(it);
  }
  return agents;
}

std::set<std::string> ResultBuffer::DropServer(std::string_view server_id) {
  std::set<std::string> agents;
  auto it = entries_.lower_bound(Key{std::string(server_id), "", 0, ""});
  while (it != entries_.end() && std::get<0>(it->first) == server_id) {
    if (!std::get<3>(it->first).empty()) agents.insert(std::get<3>(it->first));
    bytes_ -= it->second.bytes;
    it = entries_.erase(it);
  }
  return agents;
}

int ResultBuffer::AttemptOf(std::string_view server_id,
                            std::string_view trial_id) const {
  auto it = entries_.lower_bound(
      Key{std::string(server_id), std::string(trial_id), 0, ""});
  if (it == entries_.end() || std::get<0>(it->first) != server_id ||
      std::get<1>(it->first) != trial_id) {
    return 0;
  }
  return std::get<2>(it->first);
}

std::vector<const v1::TrialResult*> ResultBuffer::OfServer(
    std::string_view server_id) const {
  std::vector<std::pair<int64_t, const v1::TrialResult*>> found;
  for (auto it = entries_.lower_bound(Key{std::string(server_id), "", 0, ""});
       it != entries_.end() && std::get<0>(it->first) == server_id; ++it) {
    found.push_back({it->second.sequence, &it->second.result});
  }
  std::sort(found.begin(), found.end());
  std::vector<const v1::TrialResult*> results;
  for (const auto& [sequence, result] : found) results.push_back(result);
  return results;
}

double ResultBuffer::Level() const {
  return std::max(static_cast<double>(size()) / max_results_,
                  static_cast<double>(bytes_) / max_bytes_);
}

}  // namespace regatta
