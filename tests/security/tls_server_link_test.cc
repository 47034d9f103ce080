// A server that attaches to its tracker with certificates, over links that are
// slow or not there.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <vector>

#include "server/tracker_client.h"
#include "tests/security/test_lab.h"
#include "tests/support/fault_proxy.h"

namespace regatta::testing {
namespace {

class Attachments : public Dispatcher::Listener {
 public:
  void OnAttached(const v1::Attached&) override { ++count; }
  void OnDetached() override {}
  void OnResults(std::vector<v1::TrialResult>) override {}
  void OnFleetChange(const v1::FleetChange&) override {}
  void OnWaitReport(const v1::WaitReport&) override {}

  std::atomic<int> count = 0;
};

class TlsServerLinkTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto proxy = FaultProxy::Start(tracker_.address());
    ASSERT_TRUE(proxy.ok()) << proxy.status();
    link_ = *std::move(proxy);
  }
  // A server behind the link.
  std::unique_ptr<TrackerClient> Start() {
    auto client = std::make_unique<TrackerClient>(
        link_->address(), "log1", lab_.Open(Role::kServer, "log1"));
    client->Start(&attachments_);
    return client;
  }

  TestLab lab_;
  LabTracker tracker_{&lab_};
  std::unique_ptr<FaultProxy> link_;
  Attachments attachments_;
};

// Accept, handshake and the first frames take about half a second.
TEST_F(TlsServerLinkTest, AttachesOverALinkOf300MsThereAndBack) {
  link_->Delay(absl::Milliseconds(150));
  const auto client = Start();
  EXPECT_TRUE(
      WaitFor(absl::Seconds(20), [&] { return attachments_.count > 0; }))
      << link_->counts().accepted << " connections";
  client->Stop();
  EXPECT_LE(link_->counts().accepted, 2);
}

TEST_F(TlsServerLinkTest, TriesAgainAtOnceWhereConnectionsAreRefused) {
  link_->Refuse(true);
  const auto client = Start();
  // After 100, 200 and 400 ms, were they not the time of the tries themselves.
  EXPECT_TRUE(
      WaitFor(absl::Seconds(10), [&] { return link_->counts().accepted >= 4; }))
      << link_->counts().accepted << " connections";
  EXPECT_EQ(attachments_.count, 0);
  link_->Refuse(false);
  EXPECT_TRUE(
      WaitFor(absl::Seconds(10), [&] { return attachments_.count > 0; }));
  client->Stop();
}

}  // namespace
}  // namespace regatta::testing
