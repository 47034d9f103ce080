# A board's programs for 64-bit ARM, run by QEMU: built here, anew whenever
# anything changes, where deploy/install-packages --arm was run; else what needs
# them is skipped.
find_program(QEMU_AARCH64 qemu-aarch64)
set(arm_grpc /usr/lib/aarch64-linux-gnu/libgrpc++.so)
if(QEMU_AARCH64 AND EXISTS ${arm_grpc})
  set(REGATTA_ARM_MISSING "" CACHE INTERNAL "")
  add_custom_target(arm_programs
    COMMAND ${CMAKE_COMMAND} --preset aarch64 --log-level=WARNING
    COMMAND ${CMAKE_COMMAND} --build --preset aarch64
    WORKING_DIRECTORY ${CMAKE_SOURCE_DIR}
    COMMENT "Building a board's programs for 64-bit ARM"
    VERBATIM)
else()
  set(REGATTA_ARM_MISSING
    "no QEMU or no libraries for ARM here (deploy/install-packages --arm)"
    CACHE INTERNAL "")
  add_custom_target(arm_programs)
endif()

# regatta_arm_test(NAME): tells NAME where they are, or why they are not.
function(regatta_arm_test name)
  add_dependencies(${name} arm_programs regatta-instruction-count)
  target_compile_definitions(${name} PRIVATE
    REGATTA_ARM_MISSING="${REGATTA_ARM_MISSING}"
    REGATTA_ARM_BIN_DIR="${CMAKE_SOURCE_DIR}/build/aarch64/bin"
    REGATTA_QEMU="${QEMU_AARCH64}"
    REGATTA_INSTRUCTION_COUNT="$<TARGET_FILE:regatta-instruction-count>")
endfunction()
