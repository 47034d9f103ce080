# The agent's loop, spool and probes; the tracker client; the daemon.
find_package(ZLIB REQUIRED)
add_library(regatta_noise_floor STATIC probe/noise_floor.cc)
target_link_libraries(regatta_noise_floor PUBLIC regatta_base)
add_library(regatta_probe_kernels STATIC probe/kernels.cc)
target_link_libraries(regatta_probe_kernels PUBLIC regatta_base)
# What measures a core must be optimised in every preset.
set_source_files_properties(probe/kernels.cc PROPERTIES COMPILE_OPTIONS -O3)
add_library(regatta_emulator STATIC probe/emulator.cc)
target_link_libraries(regatta_emulator PUBLIC regatta_base)
add_library(regatta_agent_probe STATIC
  probe/arm_registers.cc probe/background_probe.cc probe/cache_levels.cc
  probe/clock_control.cc probe/cpu_probe.cc
  probe/machine.cc probe/probe_history.cc)
target_link_libraries(regatta_agent_probe PUBLIC
  regatta_base regatta_proto regatta_board_io regatta_emulator
  regatta_noise_floor regatta_probe_kernels)

add_library(regatta_agent_loop STATIC
  loop/admission.cc loop/agent_loop.cc loop/agent_runtime.cc
  loop/agent_setup.cc loop/agent_stats.cc loop/agent_time.cc loop/agent_work.cc
  loop/spool.cc loop/spool_record.cc
  loop/spool_storage.cc)
target_compile_definitions(regatta_agent_loop PRIVATE
  REGATTA_VERSION="${PROJECT_VERSION}")
target_link_libraries(regatta_agent_loop PUBLIC
  regatta_base regatta_metrics regatta_proto regatta_agent_probe PRIVATE ZLIB::ZLIB)

# Modules of other machines' builders, and for them.
add_library(regatta_agent_remote STATIC
  remote/build_seal.cc remote/builder_key.cc remote/description_watch.cc
  remote/order_builder.cc
  remote/order_desk.cc remote/remote_build_worker.cc)
target_link_libraries(regatta_agent_remote PUBLIC
  regatta_agent_loop regatta_measure regatta_proto)

# Kinds of devices: how to find and to measure them.
add_library(regatta_agent_devices STATIC
  devices/cpu_provider.cc devices/cuda_provider.cc devices/device_probes.cc
  devices/device_provider.cc devices/driver_devices.cc
  devices/nvidia_files.cc devices/opencl_provider.cc
  devices/provider_list.cc)
target_link_libraries(regatta_agent_devices PUBLIC
  regatta_agent_loop regatta_agent_probe regatta_measure regatta_proto)

add_library(regatta_agent_identity STATIC agent_security.cc)
target_link_libraries(regatta_agent_identity PUBLIC regatta_security)

add_library(regatta_agent_client STATIC tracker_client.cc)
target_link_libraries(regatta_agent_client PUBLIC
  regatta_agent_identity regatta_agent_loop)

add_executable(regatta-agent agent_flags.cc agent_metrics.cc agent_process.cc main.cc spawned_workers.cc)
target_compile_definitions(regatta-agent PRIVATE
  REGATTA_VERSION="${PROJECT_VERSION}")
target_link_libraries(regatta-agent PRIVATE
  regatta_agent_client regatta_agent_devices regatta_agent_probe
  regatta_agent_remote
  regatta_measure regatta_metrics_endpoint CLI11::CLI11)
