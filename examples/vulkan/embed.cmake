# cmake -DHOST=elementwise_mul.vmasm -DEXECUTABLE=mul.bin -DOUTPUT=FILE -P embed.cmake: the host's program with this
# executable in place of the one for the CPU.
file(READ "${HOST}" text)
file(READ "${EXECUTABLE}" bytes HEX)
string(REGEX REPLACE "\n// The device's code\\..*\n// Ref globals" "\nvm.rodata[6] = ${bytes}\n\n// Ref globals" text "${text}")
string(REPLACE "vmvx-bytecode-fb" "vulkan-spirv-fb" text "${text}")
string(REPLACE "--device=local-sync" "--device=vulkan" text "${text}")
string(REPLACE "VMVX code" "Vulkan kernels" text "${text}")
file(WRITE "${OUTPUT}" "${text}")
