#include "server/job/fleet_view.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace regatta {

FleetView FleetView::With(const FleetMirror& mirror,
                          const std::set<std::string>& classes) const {
  FleetView next = *this;
  next.known_ = true;
  for (const std::string& name : classes) {
    const FleetMirror::Devices& devices = mirror.OfClass(name);
    if (devices.empty()) {
      next.classes_.erase(name);
    } else {
      next.classes_[name] = std::make_shared<const Class>(Sum(devices));
    }
  }
  return next;
}

FleetView::Class FleetView::Sum(const FleetMirror::Devices& devices) {
  Class sum;
  ClassView& view = sum.view;
  for (const auto& [id, device] : devices) {
    const v1::DeviceInfo& info = device.info();
    if (info.has_noise_floor()) sum.noise[id] = info.noise_floor();
    ++view.devices;
    view.targets.insert(info.target());
    const std::string& obstacle = device.obstacle();
    const bool online =
        device.presence() == v1::PRESENCE_ONLINE && obstacle.empty();
    if (!obstacle.empty() && view.obstacle.empty()) {
      view.obstacle =
          absl::StrCat("board ", info.device_id(), " is ", obstacle);
    }
    // The first device speaks for its class, an online one before others.
    if (view.devices == 1 || (online && view.online == 0)) {
      view.target = info.target();
      view.cores = info.cores();
      view.simulated = info.simulated();
    }
    view.peak_flops_per_s =
        std::max(view.peak_flops_per_s, info.peak_flops_per_s());
    view.bandwidth_bytes_per_s =
        std::max(view.bandwidth_bytes_per_s, info.bandwidth_bytes_per_s());
    view.memory_bytes = std::max(view.memory_bytes, info.memory_bytes());
    // One that nobody has approved, or that is retired, asks for no tasks.
    const v1::DeviceStanding& standing = device.standing();
    if (standing.trust() != v1::TRUST_PENDING) {
      view.approved_targets.insert(info.target());
    }
    if (device.presence() != v1::PRESENCE_LOST &&
        standing.trust() != v1::TRUST_PENDING &&
        standing.operator_state() != v1::OPERATOR_STATE_RETIRED) {
      ++view.present;
    }
    if (!online) continue;
    ++view.online;
    view.credit[device.compiler_version()] += std::max(1, info.credit());
  }
  return sum;
}

const ClassView* FleetView::Find(std::string_view device_class) const {
  const auto found = classes_.find(device_class);
  return found == classes_.end() ? nullptr : &found->second->view;
}

std::vector<std::string> FleetView::RealClasses() const {
  std::vector<std::string> names;
  for (const auto& [name, known] : classes_) {
    if (!known->view.simulated) names.push_back(name);
  }
  return names;
}

std::vector<std::string> FleetView::PresentRealClasses() const {
  std::vector<std::string> names;
  for (const auto& [name, known] : classes_) {
    if (!known->view.simulated && known->view.present > 0) {
      names.push_back(name);
    }
  }
  return names;
}

std::vector<std::string> FleetView::Classes() const {
  std::vector<std::string> names;
  for (const auto& [name, known] : classes_) names.push_back(name);
  return names;
}

std::optional<double> FleetView::NoiseFloor(
    const std::string& device_id) const {
  for (const auto& [name, known] : classes_) {
    const auto found = known->noise.find(device_id);
    if (found != known->noise.end()) return found->second;
  }
  return std::nullopt;
}

std::string FleetView::Obstacle(std::string_view device_class,
                                const std::string& compiler_version) const {
  const ClassView* view = Find(device_class);
  const std::string name(device_class);
  if (view == nullptr) return absl::StrCat("no ", name, " board is registered");
  if (view->online == 0) {
    return view->obstacle.empty()
               ? absl::StrCat("no ", name, " board is online")
               : absl::StrCat("no ", name, " board takes work; ",
                              view->obstacle);
  }
  if (view->credit.count(compiler_version) > 0) return "";
  return absl::StrCat("no ", name, " board has the server's compiler ",
                      compiler_version, "; an online one has ",
                      view->credit.begin()->first.empty()
                          ? "none"
                          : view->credit.begin()->first);
}

}  // namespace regatta
