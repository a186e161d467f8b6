// Puts each tenant's requests into a class of the policy file. The host says which tenant it is (`--attribute`);
// with a class for others, what a client asks for itself does not matter.
import { z } from "zod";

const parameters = z.strictObject({
  attribute: z.string().min(1).default("tenant"),
  classes: z.record(z.string(), z.string()),
  others: z.string().min(1).optional(),
});

export function register(registry) {
  registry.registerRequestClassifier("example-tenant-class", (given) => {
    const { attribute, classes, others } = given.parse(parameters);
    const byTenant = new Map(Object.entries(classes));
    return () => ({
      classify(request) {
        const policyClass = byTenant.get(request.attributes.get(attribute)) ?? others;
        return policyClass === undefined ? request : request.setPolicyClass(policyClass);
      },
    });
  });
}
