// Certificates change under load: nobody is dropped, new connections use the
// new one, half a pair is ignored.
#include <gtest/gtest.h>
#include <openssl/ssl.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <iostream>
#include <string>
#include <thread>

#include "base/certs/issue.h"
#include "base/certs/tls_folder.h"
#include "regatta/v1/dispatch_service.grpc.pb.h"
#include "regatta/v1/fleet_service.grpc.pb.h"
#include "tests/security/test_lab.h"

namespace regatta::testing {
namespace {

namespace fs = std::filesystem;

// The serial of the certificate that the tracker shows to a new connection.
std::string Shown(const std::string& address,
                  const std::shared_ptr<TlsIdentity>& tls) {
  const auto channel = Dial(address, tls);
  const auto stub = v1::DispatchService::NewStub(channel);
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() +
                       std::chrono::seconds(20));
  v1::ListDevicesResponse response;
  const grpc::Status status =
      stub->ListDevices(&context, v1::ListDevicesRequest(), &response);
  if (!status.ok()) return "refused: " + status.error_message();
  const auto values =
      context.auth_context()->FindPropertyValues("x509_pem_cert");
  if (values.size() != 1) return "no certificate";
  const auto certificate = Certificate::FromPem(
      std::string_view(values[0].data(), values[0].size()));
  return certificate.ok() ? certificate->Serial() : "garbage";
}

TEST(RotationTest, ANewPairIsTakenUpUnderLoadAndHalfAPairIsIgnored) {
  TestLab lab;
  LabTracker tracker(&lab);
  const auto viewer = lab.Open(Role::kViewer, "vera");
  const std::string first = Shown(tracker.address(), viewer);
  ASSERT_EQ(first.size(), 32u) << first;

  // A session that stays, and calls over new connections all the time.
  const auto agent = lab.Open(Role::kAgent, "a1");
  AgentSession session(tracker.address(), agent);
  std::atomic<bool> stop = false;
  std::atomic<int> served = 0, refused = 0;
  std::thread load([&] {
    while (!stop) {
      (Shown(tracker.address(), viewer).size() == 32 ? served : refused)++;
    }
  });

  // Half a pair: the key of another certificate.
  const std::string next = lab.Folder(
      {.lab = "lab", .role = Role::kTracker, .name = "t1", .device_class = ""});
  fs::copy_file(next + "/key.pem", tracker.folder() + "/key.pem",
                fs::copy_options::overwrite_existing);
  // For longer than it takes until the folder is looked at.
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(8);
  while (std::chrono::steady_clock::now() < until) {
    EXPECT_EQ(Shown(tracker.address(), viewer), first);
  }

  // The other half.
  const auto begin = std::chrono::steady_clock::now();
  fs::copy_file(next + "/cert.pem", tracker.folder() + "/cert.pem",
                fs::copy_options::overwrite_existing);
  const std::string wanted =
      ReadTlsFolder(next, RealClock().Wall())->certificate.Serial();
  EXPECT_TRUE(WaitFor(absl::Seconds(60), [&] {
    return Shown(tracker.address(), viewer) == wanted;
  }));
  std::cout << "new connections meet the new certificate after "
            << std::chrono::duration<double>(std::chrono::steady_clock::now() -
                                             begin)
                   .count()
            << " s\n";
  stop = true;
  load.join();
  std::cout << served << " calls over new connections meanwhile\n";
  EXPECT_EQ(refused, 0);
  EXPECT_GT(served, 10);
  // The session is still the same one.
  EXPECT_TRUE(session.Answers());
  session.context().TryCancel();
}

}  // namespace
}  // namespace regatta::testing
